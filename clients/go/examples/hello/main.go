package main

import "context"
import cbench "github.com/cbench/cbench-server/clients/go"

func main() {
	cbench.Main(cbench.System{Name: "hello", Process: func(_ context.Context, example cbench.Example) (cbench.Example, error) {
		return example.With("response", "You asked: "+example.Question()), nil
	}})
}
