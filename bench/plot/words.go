// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sizes of the text that is measured here, in the drawing's units.
const (
	small  = 11.5
	normal = 13.0
)

// Number writes a figure for people, with three digits that count: 2.96, 41.3, 1,234.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(strconv.FormatFloat(v, 'f', 0, 64))
}

// brief is Number without zeroes at its end, as axes have it.
func brief(v float64) string {
	s := strconv.FormatFloat(v, 'f', 4, 64)
	if whole, part, ok := strings.Cut(s, "."); ok {
		if part = strings.TrimRight(part, "0"); part == "" {
			return thousands(whole)
		}
		return whole + "." + part
	}
	return s
}

func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// extent guesses how wide text is, rather too wide than too narrow: which font the
// reader has is not known.
func extent(s string, size float64) float64 {
	var em float64
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
			em += .34
		case strings.ContainsRune("mwMW@%", r):
			em += .92
		case r >= 'A' && r <= 'Z':
			em += .7
		case r < utf8.RuneSelf:
			em += .58
		case r < 0x1100:
			em += .62
		default:
			em += 1.05
		}
	}
	return em * size
}

// wrap breaks text at spaces into lines that are at most so wide.
func wrap(s string, size, most float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		word = clip(word, size, most)
		if line != "" && extent(line+" "+word, size) > most {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// clip cuts text that is wider.
func clip(s string, size, most float64) string {
	if extent(s, size) <= most {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && extent(string(runes)+"…", size) > most {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}
