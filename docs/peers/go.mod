module ticketing/docs/peers

go 1.26.0

require (
	go.etcd.io/raft/v3 v3.7.0
	ticketing v0.0.0
)

require (
	golang.org/x/sync v0.25.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace ticketing => ../..
