// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// besideLimit is how many times longer a command may take beside an attack, at p99.
const besideLimit = 3.0

func neighbours(r *bench.Report) string {
	x := r.Neighbours
	if x == nil {
		return ""
	}
	ratios := table{head: []string{"attack", "p50", "p99", "its requests that were answered", "and refused"}}
	t := newTiming("`/bin/true` of another project", false)
	for _, a := range x.Attacks {
		ratios.add(plain(a.About), ratio(a.P50), ratio(a.P99), count(int(a.Answered)), count(int(a.Refused)))
		t.add("quiet", a.Quiet)
		t.add("beside "+plain(a.About), a.Attacked)
	}
	return fmt.Sprintf("A command of one project while another attacks, by a token and a sandbox like any: %s of %d cores, and the limits of whoever asks for none. "+
		"The command runs quiet and attacked in turn, %d rounds of both; a ratio is of all that ran attacked to all that ran quiet. "+
		"The attacker's clients, where it has any, are threads on the same cores, so that what they need is in the ratio, too; "+
		"what an attack takes by its right, its share of the cores, is as well. Attacks without requests are programs in the sandbox.\n\n",
		plot.Number(x.Cores), r.Machine.Cores, x.Rounds) + ratios.String() + t.String()
}

func ratio(v *float64) string {
	if v == nil {
		return "–"
	}
	return times(*v)
}

// neighbourMarks has one for each attack that was measured.
func neighbourMarks(r *bench.Report) []mark {
	one := mark{what: "a command beside each attack of another tenant: p99, times the quiet one", limit: besideLimit, unit: " ×"}
	if r.Neighbours == nil {
		return []mark{one}
	}
	var all []mark
	for _, a := range r.Neighbours.Attacks {
		m := one
		m.what = "a command beside " + plain(a.About) + ": p99, times the quiet one"
		if m.figure = a.P99; a.P50 != nil {
			m.beside = "p50 " + times(*a.P50)
		}
		all = append(all, m)
	}
	return all
}
