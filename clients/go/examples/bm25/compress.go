package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// How soon repetition stops to count, and how much long sentences are held
// back: the values Robertson and Zaragoza recommend.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Compress keeps the sentences of text that fit the question best, in their
// order, with at most ratio of the words in all, but at least one sentence.
//
// Sentences that share no word with the question are dropped, unless all are:
// then the text is kept from its start.
func Compress(text, question string, ratio float64) string {
	sentences := Sentences(text)
	if len(sentences) == 0 {
		return text
	}
	documents := make([][]string, len(sentences))
	total := 0
	for position, sentence := range sentences {
		documents[position] = Words(sentence)
		total += len(documents[position])
	}
	scores := Scores(documents, Words(question))
	order := make([]int, len(sentences))
	for position := range order {
		order[position] = position
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(scores[b], scores[a])
	})
	budget := int(ratio * float64(total))
	kept := []int{order[0]}
	budget -= len(documents[order[0]])
	for _, position := range order[1:] {
		isRelevant := scores[position] > 0 || scores[order[0]] == 0
		if isRelevant && len(documents[position]) <= budget {
			kept = append(kept, position)
			budget -= len(documents[position])
		}
	}
	slices.Sort(kept)
	chosen := make([]string, len(kept))
	for index, position := range kept {
		chosen[index] = sentences[position]
	}
	return strings.Join(chosen, " ")
}

// Scores gives each document its BM25 score for a query.
func Scores(documents [][]string, query []string) []float64 {
	containing := map[string]int{}
	words := 0
	for _, document := range documents {
		words += len(document)
		for word := range asSet(document) {
			containing[word]++
		}
	}
	mean := float64(words) / float64(max(1, len(documents)))
	// Sorted, because the order of additions decides the last bits of a sum.
	terms := slices.Sorted(maps.Keys(asSet(query)))
	scores := make([]float64, len(documents))
	for position, document := range documents {
		frequency := map[string]int{}
		for _, word := range document {
			frequency[word]++
		}
		for _, term := range terms {
			count := float64(frequency[term])
			if count == 0 {
				continue
			}
			with := float64(containing[term])
			rarity := math.Log1p((float64(len(documents)) - with + 0.5) / (with + 0.5))
			norm := saturation * (1 - lengthBias + lengthBias*float64(len(document))/mean)
			scores[position] += rarity * count * (saturation + 1) / (count + norm)
		}
	}
	return scores
}

// Words returns the words of a text in lower case, without endings that only inflect.
func Words(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for position, word := range words {
		words[position] = stem(word)
	}
	return words
}

// stem takes the most usual English endings off words that stay long enough.
func stem(word string) string {
	for _, ending := range []string{"ing", "ed", "es", "s"} {
		if rest, found := strings.CutSuffix(word, ending); found && len(rest) >= 3 {
			return rest
		}
	}
	return word
}

// Sentences splits a text after full stops, question and exclamation marks that
// are followed by space, and at line breaks.
func Sentences(text string) []string {
	var sentences []string
	start := 0
	add := func(end int) {
		if sentence := strings.TrimSpace(text[start:end]); sentence != "" {
			sentences = append(sentences, sentence)
		}
		start = end
	}
	isEnding := false
	for position, r := range text {
		switch {
		case r == '\n', isEnding && unicode.IsSpace(r):
			add(position)
			isEnding = false
		case strings.ContainsRune(".!?。！？", r):
			isEnding = true
		case isEnding && strings.ContainsRune(`"'”’)]`, r):
			// A closing mark belongs to the sentence before it.
		default:
			isEnding = false
		}
	}
	add(len(text))
	return sentences
}

func asSet(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}
