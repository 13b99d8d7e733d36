package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/rpc"
)

// forgetful is a disk for an example. A real server has a wal.Log.
type forgetful struct{}

func (forgetful) Save(raft.Write) error             { return nil }
func (forgetful) SaveSnapshot(*raft.Snapshot) error { return nil }
func (forgetful) Close() error                      { return nil }

// A cluster of one server, and a program that takes a lock of it.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	addr := listener.Addr().String()
	node, err := rpc.Start(rpc.Config{
		ID: 1, Addrs: map[raft.ServerID]string{1: addr}, Cluster: 1,
		ElectionTimeout: 100 * time.Millisecond, HeartbeatTimeout: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}, forgetful{}, raft.Durable{}, listener)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	client, err := rpc.Dial(ctx, []string{addr}, rpc.Options{Owner: "an example"})
	if err != nil {
		log.Fatal(err)
	}
	lock, err := client.Lock(ctx, "backup", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("token", lock.Token())
	if err := lock.Unlock(ctx); err != nil {
		fmt.Println(err)
	}
	client.Close()
	if err := node.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// token 1
}

// serve starts a server as in Example, which stop stops.
func serve() (addrs []string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	addr := listener.Addr().String()
	node, err := rpc.Start(rpc.Config{
		ID: 1, Addrs: map[raft.ServerID]string{1: addr}, Cluster: 1,
		ElectionTimeout: 100 * time.Millisecond, HeartbeatTimeout: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}, forgetful{}, raft.Durable{}, listener)
	if err != nil {
		log.Fatal(err)
	}
	return []string{addr}, func() {
		if err := node.Stop(); err != nil {
			log.Fatal(err)
		}
	}
}

// dial is Dial for an example that has nothing to say about errors.
func dial(addrs []string, owner string) *rpc.Client {
	client, err := rpc.Dial(context.Background(), addrs, rpc.Options{Owner: owner})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// Whoever holds a lock looks at Done before each step, and at what Unlock says in the end.
func ExampleClient_Lock() {
	addrs, stop := serve()
	defer stop()
	client := dial(addrs, "a program")
	defer client.Close()
	ctx := context.Background()

	waiting, cancel := context.WithTimeout(ctx, 10*time.Second) // for the lock, no longer
	lock, err := client.Lock(waiting, "backup", time.Minute)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
	for step := range 3 {
		select {
		case <-lock.Done():
			fmt.Println("stop:", lock.Err())
		default:
			fmt.Println("step", step, "with token", lock.Token())
		}
	}
	switch err := lock.Unlock(ctx); {
	case errors.Is(err, rpc.ErrNotHeld):
		fmt.Println("it was lost on the way: somebody else may have worked as well")
	case err != nil:
		fmt.Println("it is free when its lease is over:", err)
	default:
		fmt.Println("given back")
	}
	_, err = client.Lock(ctx, "backup", -time.Second)
	fmt.Println(errors.Is(err, rpc.ErrLeaseRange))
	// Output:
	// step 0 with token 1
	// step 1 with token 1
	// step 2 with token 1
	// given back
	// true
}

// Do is what most programs want. The second of these takes longer than its lease, and hears of it.
func ExampleClient_Do() {
	addrs, stop := serve()
	defer stop()
	client := dial(addrs, "a program")
	defer client.Close()
	ctx := context.Background()

	err := client.Do(ctx, "report", time.Minute, func(ctx context.Context, token fsm.Token) error {
		fmt.Println("working with token", token)
		return nil
	})
	fmt.Println(err)
	slow := func(ctx context.Context, _ fsm.Token) error {
		<-ctx.Done() // as every call with this context does that takes too long
		return nil
	}
	err = client.Do(ctx, "report", 400*time.Millisecond, slow)
	fmt.Println(errors.Is(err, rpc.ErrLost))
	// Output:
	// working with token 1
	// <nil>
	// true
}

// account is something that a lock protects. It accepts a token that is not smaller than any it has
// seen, and looks at it in the same step in which it writes. Where the data is durable, the
// greatest token is part of it.
type account struct {
	greatest fsm.Token
	balance  int
}

func (a *account) deposit(token fsm.Token, amount int) error {
	if token == 0 || token < a.greatest {
		return fmt.Errorf("token %d comes after token %d: refused", token, a.greatest)
	}
	a.greatest, a.balance = token, a.balance+amount
	return nil
}

// A program that stood still with the lock in its hand writes when another has it. No lock service
// can keep it from that; what the lock protects can, by the token.
func ExampleClient_TryLock() {
	addrs, stop := serve()
	defer stop()
	slow, quick := dial(addrs, "slow"), dial(addrs, "quick")
	defer slow.Close()
	defer quick.Close()
	ctx := context.Background()
	var savings account

	first, err := slow.TryLock(ctx, "savings", 400*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	_, err = quick.TryLock(ctx, "savings", time.Minute)
	var held *rpc.HeldError
	if errors.As(err, &held) {
		fmt.Println(held.Owner, "has it with token", held.Token)
	}

	second, err := quick.Lock(ctx, "savings", time.Minute) // waits until the lease is over
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(savings.deposit(second.Token(), 10))
	fmt.Println(savings.deposit(first.Token(), 10)) // it has not looked at first.Done
	fmt.Println("balance", savings.balance)
	// Output:
	// slow has it with token 1
	// <nil>
	// token 1 comes after token 2: refused
	// balance 10
}
