package cbench

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

var evaluatorName = regexp.MustCompile(`^[a-z0-9-]{1,200}$`)

// Evaluator scores what a system made of an example.
//
// It is passed to [Serve] and [Attach] like an option. Score is called from
// many goroutines at once.
type Evaluator struct {
	// Name is made of lowercase letters, digits and dashes.
	Name string
	// Version changes when equal pairs may score differently.
	Version string
	// Description is one sentence for `cbench evaluators`.
	Description string
	// Scores announces the scores given.
	Scores []ScoreInfo
	// RequiredFields are those read from the original example.
	RequiredFields []string
	// Options declares the options taken, by a struct whose values are the
	// defaults: Settings{Ratio: 0.5}, with
	//
	//	Ratio float64 `help:"The share to keep." min:"0" max:"1"`
	//
	// They are checked before a run, shown by `cbench evaluators`, and read with
	// [OptionsOf]. Further tags are option:"name", enum:"low,high" and
	// required:"true"; option:"*" is a map for any others. Nil means that it takes
	// none, unless TakesOptions is set.
	Options any
	// TakesOptions says that Score reads [Call].Options, whatever they are. Without it and
	// without Options a call with options is refused.
	TakesOptions bool
	// MaxConcurrency is how many calls may run at once. Zero means that the
	// daemon decides, up to 256.
	MaxConcurrency int
	// Score compares processed with original and names each score. One that
	// does not apply is left out, not set to zero.
	Score func(ctx context.Context, original, processed Example) (Assessment, error)
}

// ScoreInfo announces one kind of score.
type ScoreInfo struct {
	// Name is made of lowercase letters, digits and underscores.
	Name string
	// Description is what a reader should make of it, in one sentence.
	Description string
	// LowerIsBetter says that a smaller value is better.
	LowerIsBetter bool
	// Worst is what a row counts whose system failed. Nil means 0 where larger is better and all
	// values lie between 0 and 1; any other score then has no mean over rows of which some failed.
	Worst *float64
}

// Assessment is what an evaluator has to say about one pair.
type Assessment struct {
	// Scores are the values by name.
	Scores map[string]float64
	// Explanation says why, for a person reading one row.
	Explanation string
	// Details are what led to the scores, such as the extracted answer.
	Details map[string]any
}

func (e Evaluator) addTo(host *host) error {
	if !evaluatorName.MatchString(e.Name) {
		return notServable("an evaluator has the name %q; a name is made of lowercase letters, digits and dashes", e.Name)
	}
	if err := checkConcurrency(e.Name, e.MaxConcurrency); err != nil {
		return err
	}
	if e.Score == nil {
		return notServable("evaluator %q has no Score", e.Name)
	}
	info := &pb.EvaluatorInfo{
		Name: e.Name, Version: e.Version, Description: e.Description, RequiredFields: e.RequiredFields,
		MaxConcurrency: stated(e.MaxConcurrency),
	}
	for _, score := range e.Scores {
		direction := pb.ScoreDirection_SCORE_DIRECTION_HIGHER_IS_BETTER
		if score.LowerIsBetter {
			direction = pb.ScoreDirection_SCORE_DIRECTION_LOWER_IS_BETTER
		}
		info.Scores = append(info.Scores, &pb.ScoreInfo{
			Name: score.Name, Description: score.Description, HigherIsBetter: !score.LowerIsBetter, Direction: direction,
			Worst: score.Worst,
		})
	}
	if e.Options == nil && !e.TakesOptions {
		e.Options = struct{}{}
	}
	declared, err := declare(e.Name, e.Options)
	if err != nil {
		return err
	}
	info.DeclaredOptions = declared.announced()
	served := &servedEvaluator{newOffer(e.Name, OriginEvaluator, e.MaxConcurrency), e, info, declared}
	return host.evaluators.add("evaluator", e.Name, served)
}

type servedEvaluator struct {
	*offer
	evaluator Evaluator
	info      *pb.EvaluatorInfo
	declared  *declared
}

func (e *servedEvaluator) score(ctx context.Context, callID string, request *pb.ScoreRequest) (proto.Message, error) {
	original, err := decodeExample(request.GetOriginal())
	if err != nil {
		return nil, invalid(fmt.Errorf("original: %w", err), OriginEvaluator)
	}
	processed, err := decodeExample(request.GetProcessed())
	if err != nil {
		return nil, invalid(fmt.Errorf("processed: %w", err), OriginEvaluator)
	}
	options, err := decodeFields(request.GetOptions(), "options.", 0)
	if err != nil {
		return nil, invalid(err, OriginEvaluator)
	}
	if len(options) > 0 && e.declared.takesNone() {
		names := strings.Join(slices.Sorted(maps.Keys(options)), ", ")
		return nil, invalid(fmt.Errorf("evaluator %q takes no options, and got: %s", e.evaluator.Name, names), OriginEvaluator)
	}
	if ctx, err = e.declared.into(ctx, options); err != nil {
		return nil, invalid(err, OriginEvaluator)
	}
	assessment, err := e.evaluator.Score(withCall(ctx, Call{ID: callID, Options: options}), original, processed)
	if err != nil {
		return nil, err
	}
	for name := range assessment.Scores {
		if _, err := encodeText(name, "scores"); err != nil {
			return nil, unencodable(err, "Score", OriginEvaluator)
		}
	}
	if _, err := encodeText(assessment.Explanation, "explanation"); err != nil {
		return nil, unencodable(err, "Score", OriginEvaluator)
	}
	details, err := encodeFields(assessment.Details, "details.", 0)
	if err != nil {
		return nil, unencodable(err, "Score", OriginEvaluator)
	}
	return &pb.ScoreResponse{Scores: assessment.Scores, Explanation: assessment.Explanation, Details: details}, nil
}
