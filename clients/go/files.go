package cbench

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// Compare says which differences between systems of one or two runs can be claimed.
func (c *Client) Compare(ctx context.Context, asked *pb.CompareRequest) (*pb.Comparison, error) {
	response, err := request(ctx, c, c.bench.Compare, asked)
	return response.GetComparison(), err
}

// Gate checks a system of a run against policies.
func (c *Client) Gate(ctx context.Context, asked *pb.GateRequest) (*pb.GateResponse, error) {
	return request(ctx, c, c.bench.Gate, asked)
}

// Report writes a run as one HTML page that needs no network.
func (c *Client) Report(ctx context.Context, asked *pb.ReportRequest, to io.Writer) error {
	return received(ctx, c, c.bench.Report, asked, to)
}

// Export writes a run in a format for other programs, or as a whole, in the
// format `run`, for [Client.Import].
func (c *Client) Export(ctx context.Context, asked *pb.ExportRequest, to io.Writer) error {
	return received(ctx, c, c.bench.Export, asked, to)
}

// Import stores a run that Export wrote in the format `run`, under a new id if
// asked for. It reports whether the run was stored already.
func (c *Client) Import(ctx context.Context, from io.Reader, newID bool) (run *pb.Run, alreadyStored bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire, err := c.bench.Import(ctx)
	if err != nil {
		return nil, false, c.explained(err, nil)
	}
	piece := make([]byte, uploadBytes)
	for {
		count, readError := io.ReadFull(from, piece)
		if count > 0 && wire.Send(&pb.ImportRequest{Content: piece[:count], NewId: newID}) != nil {
			// Its status comes with the response.
			break
		}
		if errors.Is(readError, io.EOF) || errors.Is(readError, io.ErrUnexpectedEOF) {
			break
		}
		if readError != nil {
			return nil, false, readError
		}
	}
	response, err := wire.CloseAndRecv()
	if err != nil {
		return nil, false, c.explained(err, wire.Trailer())
	}
	return response.GetRun(), response.GetAlreadyStored(), nil
}

// ExplainWait says why a system that you started for a run in progress is away.
func (c *Client) ExplainWait(ctx context.Context, runID, reason string) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.ExplainWait, &pb.ExplainWaitRequest{RunId: runID, Reason: reason})
	return response.GetRun(), err
}

// received writes the pieces of a file as they come.
func received[Q any, P any, R interface {
	*P
	GetContent() []byte
}](
	ctx context.Context, c *Client,
	method func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[P], error), asked Q, to io.Writer,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire, err := method(ctx, asked)
	if err != nil {
		return c.explained(err, nil)
	}
	for {
		piece, err := wire.Recv()
		if errors.Is(err, io.EOF) {
			c.hasAnswered.Store(true)
			return nil
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		if err != nil {
			return c.explained(err, wire.Trailer())
		}
		if _, err := to.Write(R(piece).GetContent()); err != nil {
			return err
		}
	}
}
