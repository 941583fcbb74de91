// Causes asks a daemon for a run that it does not have, and prints which error came of it, for
// tests/sdks/test_causes.py: causes ADDRESS TOKEN TLS CA MILLISECONDS.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	cbench "github.com/cbench/cbench-server/clients/go"
)

func main() {
	if err := ask(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Printf("%T %s\n", err, cbench.Reason(err))
	}
}

func ask(address, token, secured, ca, milliseconds string) error {
	limit, err := strconv.Atoi(milliseconds)
	if err != nil {
		return err
	}
	options := []cbench.ClientOption{cbench.WithToken(token), cbench.WithTimeout(time.Duration(limit) * time.Millisecond)}
	if secured != "" {
		config, err := cbench.ClientTLS(ca, "", "", "")
		if err != nil {
			return err
		}
		options = append(options, cbench.WithTLS(config))
	}
	client, err := cbench.NewClient(address, options...)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Get(context.Background(), "no-such-run")
	return err
}
