package cbench

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// crossed sends fields over the wire's encoding and back.
func crossed(t *testing.T, fields map[string]any) map[string]any {
	t.Helper()
	message, err := encodeExample(NewExample(fields))
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	received := &pb.Example{}
	if err := proto.Unmarshal(data, received); err != nil {
		t.Fatal(err)
	}
	example, err := decodeExample(received)
	if err != nil {
		t.Fatal(err)
	}
	return example.Fields()
}

func TestValuesOfEveryKindComeBackAsTheyWent(t *testing.T) {
	fields := map[string]any{
		"null": nil, "true": true, "false": false, "zero": int64(0),
		"most": int64(math.MaxInt64), "least": int64(math.MinInt64), "beyond double": int64(9007199254740993),
		"one": 1.0, "inf": math.Inf(1), "tiny": 5e-324, "empty": "", "text": "naïve 漢字 🎉 e\u0301 \x00",
		"bytes": []byte{0, 255, 128}, "list": []any{int64(1), 1.0, "1", []any{}, nil},
		"map": map[string]any{"": "empty key", "deep": map[string]any{"er": []any{true}}},
		"id":  "1", "dataset": "mini-qa",
	}
	if got := crossed(t, fields); !reflect.DeepEqual(got, fields) {
		t.Errorf("sent %#v\ncame %#v", fields, got)
	}
}

func TestNaNAndTheSignOfZeroSurvive(t *testing.T) {
	got := crossed(t, map[string]any{"nan": math.NaN(), "negative": math.Copysign(0, -1)})
	if !math.IsNaN(got["nan"].(float64)) || !math.Signbit(got["negative"].(float64)) {
		t.Errorf("came %v", got)
	}
}

func TestAnIDKeepsItsType(t *testing.T) {
	for _, id := range []any{int64(1), "1", int64(math.MinInt64), ""} {
		if got := crossed(t, map[string]any{"id": id})["id"]; got != id {
			t.Errorf("sent %#v, came %#v", id, got)
		}
	}
}

func TestTheUsualGoTypesAreTaken(t *testing.T) {
	type label string
	got := crossed(t, map[string]any{
		"int": 7, "uint8": uint8(7), "float32": float32(0.5), "strings": []string{"a", "b"},
		"counts": map[string]int{"a": 1}, "label": label("x"), "array": [2]bool{true, false}, "nested": [][]int{{1}, {}},
	})
	want := map[string]any{
		"int": int64(7), "uint8": int64(7), "float32": 0.5, "strings": []any{"a", "b"},
		"counts": map[string]any{"a": int64(1)}, "label": "x", "array": []any{true, false},
		"nested": []any{[]any{int64(1)}, []any{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("came %#v", got)
	}
}

func nested(levels int) any {
	value := []any{}
	for range levels - 1 {
		value = []any{value}
	}
	return value
}

func TestWhatCannotCrossIsRefusedByName(t *testing.T) {
	cases := map[string]struct {
		fields map[string]any
		name   string
	}{
		"uint beyond int64": {map[string]any{"big": uint64(math.MaxUint64)}, "big"},
		"struct":            {map[string]any{"a": []any{0, struct{}{}}}, "a[1]"},
		"function":          {map[string]any{"f": func() {}}, "f"},
		"integer keys":      {map[string]any{"m": map[int]string{1: "x"}}, "m"},
		"no UTF-8":          {map[string]any{"m": map[string]any{"t": "\xff"}}, "m.t"},
		"no UTF-8 in a key": {map[string]any{"\xff": 1}, `\xff`},
		"too deep":          {map[string]any{"deep": nested(31)}, "deep"},
		"id":                {map[string]any{"id": 1.5}, "id"},
		"pointer":           {map[string]any{"p": new(int)}, "p"},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := encodeExample(NewExample(each.fields))
			var refused *UnencodableError
			if !errors.As(err, &refused) || !strings.Contains(refused.Field, each.name) {
				t.Errorf("got %v, want a refusal of %s", err, each.name)
			}
		})
	}
	if got := crossed(t, map[string]any{"deep": nested(30)})["deep"]; !reflect.DeepEqual(got, nested(30)) {
		t.Error("thirty levels are allowed")
	}
}

func TestAMessageThatMeansNothingIsRefusedByName(t *testing.T) {
	list := &pb.Value{Kind: &pb.Value_ListValue{ListValue: &pb.ListValue{Values: []*pb.Value{{}}}}}
	cases := map[string]*pb.Example{
		`"bad[0]"`: {Fields: map[string]*pb.Value{"bad": list}},
		`"null"`:   {Fields: map[string]*pb.Value{"null": {Kind: &pb.Value_NullValue{NullValue: false}}}},
		`"id"`:     {Id: &pb.ExampleId{}},
	}
	for name, message := range cases {
		if _, err := decodeExample(message); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want a refusal of %s", err, name)
		}
	}
}

func TestRandomValuesComeBackAsTheyWent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		fields := map[string]any{"value": randomValue(random, 4)}
		if got := crossed(t, fields); !reflect.DeepEqual(got, fields) {
			t.Fatalf("sent %#v\ncame %#v", fields, got)
		}
	}
}

func randomValue(random *rand.Rand, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch random.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return int64(random.Uint64())
	case 3:
		return random.NormFloat64() * math.Pow(2, float64(random.IntN(2000)-1000))
	case 4:
		return string([]rune{rune(random.IntN(0xD800)), rune(0x10000 + random.IntN(0x1000))})
	case 5:
		return []byte{byte(random.IntN(256)), byte(random.IntN(256))}
	case 6:
		list := make([]any, random.IntN(4))
		for position := range list {
			list[position] = randomValue(random, depth-1)
		}
		return list
	}
	fields := map[string]any{}
	for range random.IntN(4) {
		fields[string(rune('a'+random.IntN(26)))] = randomValue(random, depth-1)
	}
	return fields
}
