// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Period is a flag for a length of time: "90s", "15m", "2h", "7d", or seconds.
type Period struct {
	Length time.Duration
	Given  bool
}

func (p *Period) Type() string { return "TIME" }

func (p *Period) String() string {
	if !p.Given {
		return ""
	}
	return p.Length.String()
}

func (p *Period) Set(s string) error {
	bad := fmt.Errorf("%q is not a valid length of time; write it as 90s, 15m, 2h or 7d", s)
	number, unit := s, time.Second
	if head, days := strings.CutSuffix(s, "d"); days {
		number, unit = head, 24*time.Hour
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/int64(unit) {
			return bad
		}
		p.Length, p.Given = time.Duration(n)*unit, true
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return bad
	}
	p.Length, p.Given = d, true
	return nil
}

// Seconds is for the wire: nil where the flag was not given.
func (p *Period) Seconds() *int64 {
	if !p.Given {
		return nil
	}
	n := int64(p.Length / time.Second)
	if n == 0 && p.Length > 0 {
		n = 1 // zero would mean never
	}
	return &n
}

// ExactSeconds is the same where the wire takes parts of a second.
func (p *Period) ExactSeconds() *float64 {
	if !p.Given {
		return nil
	}
	n := p.Length.Seconds()
	return &n
}

// Megabytes is a flag for a size: "512", "512M", "2G", in MiB.
type Megabytes struct {
	MiB   int
	Given bool
}

func (m *Megabytes) Type() string { return "SIZE" }

func (m *Megabytes) String() string {
	if !m.Given {
		return ""
	}
	return strconv.Itoa(m.MiB) + "M"
}

func (m *Megabytes) Set(s string) error {
	t := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	factor := 1.0
	switch {
	case strings.HasSuffix(t, "M"):
		t = strings.TrimSuffix(t, "M")
	case strings.HasSuffix(t, "G"):
		t, factor = strings.TrimSuffix(t, "G"), 1024
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || !(n > 0) || n*factor > math.MaxInt32 || n*factor < 1 {
		return fmt.Errorf("%q is not a valid size; write it as 512M or 2G", s)
	}
	m.MiB, m.Given = int(n*factor), true
	return nil
}

func (m *Megabytes) Value() *int {
	if !m.Given {
		return nil
	}
	return &m.MiB
}
