// Package cbench serves systems, memory systems and evaluators to cbench-server,
// attaches them to a daemon that cannot dial this process, and drives a daemon.
//
// A system is a function from one example to another:
//
//	cbench.Main(cbench.System{Name: "hello", Process: func(_ context.Context, example cbench.Example) (cbench.Example, error) {
//		return example.With("response", "hello"), nil
//	}})
//
// [Serve] and [Attach] run until SIGINT or SIGTERM; [Server] and [Attachment] do
// the same under the control of a larger program. [Client] drives a daemon.
//
// The context given to user code ends when the caller's deadline passes or the
// caller gives the call up. An error returned and a panic fail that one call;
// return a [Failure] to say more, such as that a retry may help.
package cbench

const version = "0.1.0"

// sdk names this library in Describe and Hello.
const sdk = "cbench-go/" + version

// maxMessageBytes is the largest message that either side sends or takes.
const maxMessageBytes = 128 << 20
