// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// aptFetch follows what apt fetches by its lines: how many bytes of how many, since when.
type aptFetch struct {
	now   func() time.Time
	begun time.Time // of these packages; zero: none are fetched
	// done and size are of all that apt fetched, or said that it will; first is what was done when these began.
	done, size, first int64
	current           int64 // the size of what is under way
}

var (
	aptNeed = regexp.MustCompile(`^Need to get ([\d.,]+ [kMGT]?B)(?:/[\d.,]+ [kMGT]?B)? of archives`)
	aptGet  = regexp.MustCompile(`^Get:\d+ \S+ \S+ \S+ (\S+) \S+ \S+ \[([\d.,]+ [kMGT]?B)\]$`)
)

// line takes a line of apt's, and returns what is to be shown of it; empty: it is not about fetching packages.
func (f *aptFetch) line(line string) string {
	if m := aptNeed.FindStringSubmatch(line); m != nil {
		f.end()
		if need := aptBytes(m[1]); need > 0 {
			f.begun, f.first, f.size = f.now(), f.done, f.done+need
		}
		return ""
	}
	switch {
	case f.begun.IsZero():
		return ""
	case strings.HasPrefix(line, "Fetched "), strings.HasPrefix(line, "Unpacking "):
		f.end()
		return ""
	}
	m := aptGet.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	f.done = min(f.done+f.current, f.size)
	f.current = aptBytes(m[2])
	text := fmt.Sprintf("fetching %s: %s of %s", m[1], megabytes(f.done), megabytes(f.size))
	took := f.now().Sub(f.begun).Seconds()
	if rate := float64(f.done-f.first) / took; took >= 1 && rate >= 1 {
		left := time.Duration(math.Ceil(float64(f.size-f.done)/rate)) * time.Second
		text += fmt.Sprintf(" · %s/s · %v left", megabytes(int64(rate)), left)
	}
	return text
}

// end notes that all of these packages are there.
func (f *aptFetch) end() {
	if !f.begun.IsZero() {
		f.done, f.current, f.begun = f.size, 0, time.Time{}
	}
}

// leastFetched is what the packages of a minimal system with Python have: the total before apt has said it for all
// its steps.
const leastFetched = 60 << 20

// part is how far the fetching is.
func (f *aptFetch) part() float64 { return float64(f.done) / float64(max(f.size, leastFetched)) }

// aptBytes reads a size as apt writes it, such as "1,234 kB"; 0: it is none.
func aptBytes(s string) int64 {
	number, unit, _ := strings.Cut(strings.ReplaceAll(s, ",", ""), " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n > 1e6 {
		return 0
	}
	return int64(n * map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit])
}

// megabytes is a size as apt writes it.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
