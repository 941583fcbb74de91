// Command conformance serves what PROGRAM.md of the suite describes, with nothing
// but the SDK's public names. Run the suite against it:
//
//	go build -o bin/conformance ./conformance && cbench conformance -- bin/conformance
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	cbench "github.com/cbench/cbench-server/clients/go"
)

type flags struct {
	address, token, tlsCert, tlsKey, clientCA, attach, tlsCA string
	maxInFlight                                              int
}

func main() {
	var f flags
	flag.StringVar(&f.address, "address", "127.0.0.1:0", "where to serve")
	flag.StringVar(&f.token, "token", "", "the bearer token to demand, or to send with --attach")
	flag.StringVar(&f.tlsCert, "tls-cert", "", "serve with this PEM certificate")
	flag.StringVar(&f.tlsKey, "tls-key", "", "its key")
	flag.StringVar(&f.clientCA, "client-ca", "", "demand certificates signed by this PEM authority")
	flag.StringVar(&f.attach, "attach", "", "attach to the daemon at this address instead of serving")
	flag.StringVar(&f.tlsCA, "tls-ca", "", "with --attach: use TLS and trust this PEM authority")
	flag.IntVar(&f.maxInFlight, "max-in-flight", 0, "with --attach: calls the daemon may have outstanding")
	flag.Parse()
	run := serve
	if f.attach != "" {
		run = attach
	}
	if err := run(f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// components are all that the program offers.
func components() []cbench.Component {
	p := &probe{byKey: map[string]*counters{}}
	var all []cbench.Component
	for _, system := range systems(p) {
		system.Version = "1.0"
		all = append(all, system)
	}
	for _, evaluator := range evaluators(p) {
		evaluator.Version = "1.0"
		all = append(all, evaluator)
	}
	return append(all, memorySystem(p))
}

func serve(f flags) error {
	options := []cbench.ServeOption{cbench.WithAddress(f.address), cbench.WithToken(f.token)}
	if f.tlsCert != "" {
		config, err := cbench.ServerTLS(f.tlsCert, f.tlsKey, f.clientCA)
		if err != nil {
			return err
		}
		options = append(options, cbench.WithTLS(config))
	}
	for _, component := range components() {
		options = append(options, component)
	}
	return cbench.Serve(context.Background(), options...)
}

func attach(f flags) error {
	options := []cbench.AttachOption{cbench.WithToken(f.token), cbench.WithMaxInFlight(f.maxInFlight)}
	if f.tlsCA != "" {
		config, err := cbench.ClientTLS(f.tlsCA, "", "", "")
		if err != nil {
			return err
		}
		options = append(options, cbench.WithTLS(config))
	}
	for _, component := range components() {
		options = append(options, component)
	}
	return cbench.Attach(context.Background(), f.attach, options...)
}
