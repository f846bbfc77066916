// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strconv"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// RequestLimits bounds how many requests tokens and projects begin, as "20/s" or "600/m"; empty: it
// does not.
type RequestLimits struct {
	Token   string `yaml:"token"`   // of one token
	Project string `yaml:"project"` // of all tokens of a project together
}

// rates returns them as the guard takes them.
func (l RequestLimits) rates() (out guard.Rates, err error) {
	if out.Token, err = perSecond("limits.requests.token", l.Token); err != nil {
		return out, err
	}
	out.Project, err = perSecond("limits.requests.project", l.Project)
	return out, err
}

// perSecond reads a rate.
func perSecond(field, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit, ok := strings.Cut(text, "/")
	seconds, known := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	n, err := strconv.ParseUint(number, 10, 32)
	if !ok || !known || err != nil || n == 0 || n > 1_000_000 {
		return 0, fault.InvalidField(field, "%q is not a rate: 1 to 1000000 by s, m or h, as 20/s or 600/m", sandbox.Clip(text, 40)).
			WithRemedy("write it like that, or leave it out and there is no limit")
	}
	return float64(n) / seconds, nil
}
