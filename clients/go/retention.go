package cbench

import (
	"context"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// Pin keeps a run from being pruned, and returns its id; `last` and prefixes name it, too.
func (c *Client) Pin(ctx context.Context, runID string) (string, error) {
	response, err := request(ctx, c, c.bench.PinRun, &pb.PinRunRequest{RunId: runID})
	return response.GetRunId(), err
}

// Unpin lets a run be pruned again, and returns its id.
func (c *Client) Unpin(ctx context.Context, runID string) (string, error) {
	response, err := request(ctx, c, c.bench.PinRun, &pb.PinRunRequest{RunId: runID, Unpin: true})
	return response.GetRunId(), err
}

// Prune deletes finished runs that are old, many or large; pinned ones stay.
func (c *Client) Prune(ctx context.Context, asked *pb.PruneRunsRequest) (*pb.PruneRunsResponse, error) {
	return request(ctx, c, c.bench.PruneRuns, asked)
}
