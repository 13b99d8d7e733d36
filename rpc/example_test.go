package rpc_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// forgetful is a disk for an example. A real server has a wal.Log.
type forgetful struct{}

func (forgetful) Save(raft.Write) error { return nil }
func (forgetful) Close() error          { return nil }

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
	select {
	case <-lock.Done():
		fmt.Println("the lease is over")
	default:
		fmt.Println("the lock is still ours, by our clock") // now work, with the token
	}
	if err := lock.Unlock(ctx); err != nil {
		fmt.Println(err)
	}
	client.Close()
	if err := node.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// token 1
	// the lock is still ours, by our clock
}
