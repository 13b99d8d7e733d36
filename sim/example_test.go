package sim_test

import (
	"fmt"

	"ticketing/sim"
)

// The story that raftsim tells: a late Expire meets a freshly granted lock, with the token check
// and without.
func ExampleStory() {
	text, held, err := sim.Story(sim.Style{ASCII: true})
	fmt.Print(text)
	fmt.Println("held:", held, err)
	// Output:
	// late-expire - seed 1 - all rules on - the late Expire of A #1 meets B #2 and removes nothing
	//     ms     S1       S2       S3    door    * leads  o proposes  > arrives  ) arrives later  @ commits
	//     31     *t1----->|------->|     .       S1 asks for votes and wins term 1
	//    118     o------->|------->|     .       A asks for door -> Grant A
	//    141     @        |        |     H A #1  committed: A holds #1; A hears it at 155
	//    155     #        |        |     H       B and C ask for door
	//            #        |        |     H       ... 1900 ms, 152 heartbeats and replies
	//   2055     #        |        |     H       hold S1->*: the network keeps what is sent there
	//   2062     o.......)|.......)|     H       A releases door -> Release #1, Grant B
	//   2141     o.......)|.......)|     H       S1's clock: the lease of A #1 is over -> Expire #1
	//   2255     #       >|       >|     H       let go: Expire #1 reaches S2, S3 after 114 ms behind Release #1, Grant B
	//   2277     @        |        |     = B #2  committed: A #1 is released; B holds #2; B hears it at 2289
	//   2279     @        |        |     ! 1!=2  committed: Expire #1 meets #2: no-op, B keeps door
	//   2339     #        |        |     =       B writes with token 2: the resource takes it
	//   2359     #        |        |     =       C has no token for door: it sends nothing
	//   2416     #        |        |     =       B writes with token 2: the resource takes it
	// the same seed WITHOUT expire-token - identical through event 551 - the lease of A #1 ends late and REMOVES B #2
	//   2141     o.......)|.......)|     H A #1  S1's clock: the lease of A #1 is over -> bare Release
	//   2255     #       >|       >|     H       let go: bare Release reaches S2, S3 after 114 ms behind Release #1, Grant B
	//   2277     @        |        |     = B #2  committed: A #1 is released; B holds #2; B hears it at 2289
	//   2279     @        |        |     x gone  committed: bare Release for A #1 REMOVES B #2; removal-meant is broken
	//   2279     o------->|------->|     .       C is next -> Grant C
	//   2312     @        |        |     H C #3  committed: C holds #3; C hears it at 2332
	//   2389     #        |        |     H       B, whose #2 was removed, writes: the resource takes it
	//   2417     #        |        |     H       C writes with token 3: the resource takes it
	//   2466     #        |        |     H       B, whose #2 was removed, writes: refused, the resource has seen #3
	// with the check   [ok] removal-meant held: a removal removes only the tenure that its issuer meant
	// without it       [x] removal-meant broke at 2279 ms; B and C both believed to hold door for 1157 ms (2332 to 3489)
	// see it yourself  delete `existed = existed && tenure.Token == e.Token` in fsm/table.go, and run this again
	// next             raftsim list - raftsim run late-expire - raftsim run -trace -without expire-token late-expire
	// held: true <nil>
}
