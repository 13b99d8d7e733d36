module ticketing/cmd/linearize

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	ticketing v0.0.0
)

require golang.org/x/sync v0.25.0 // indirect

replace ticketing => ../..
