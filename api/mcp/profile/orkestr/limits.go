// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"

	"sandpit.dev/access/project"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/sandbox"
)

func limits() toolset.Tool {
	return toolset.Tool{
		Name: "get_sandbox_limits", Title: "Sizes and limits", ReadOnly: true, Idempotent: true,
		About:   "Report the sandbox sizes and limits there are here, what is in use, and the budget (null: none).",
		Example: `{}`,
		Run:     report,
	}
}

// reported is what there is [inf]: sizes, regions, concurrency and budget are
// what Orkestr's SDK reads of it; the rest are this server's own bounds.
type reported struct {
	Sizes       map[string]amount     `json:"sizes"`
	Default     toolset.Amounts       `json:"default"`
	Least       toolset.Amounts       `json:"min"`
	Most        toolset.Amounts       `json:"max"`
	Networks    []string              `json:"networks"`
	Regions     []string              `json:"regions"`
	Timeout     span                  `json:"timeout_seconds"`
	Command     span                  `json:"command_timeout_seconds"`
	Sandboxes   map[string]int        `json:"sandboxes"` // by status
	Concurrency concurrency           `json:"concurrency"`
	Budget      *toolset.BudgetShape  `json:"budget"`
	Project     *toolset.ProjectShape `json:"project,omitempty"`
}

// span is in seconds.
type span struct {
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Default *float64 `json:"default"` // null: none
}

type concurrency struct {
	Running int  `json:"running"`
	Limit   *int `json:"limit"` // null: no quota of running ones
}

func report(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	l, err := c.AllLimits(ctx)
	if err != nil {
		return nil, err
	}
	out := reported{
		Sizes: amounts(c.SizeTable()), Default: l.Default, Least: l.Least, Most: l.Most, Networks: l.Networks, Regions: []string{toolset.OnlyRegion},
		Timeout:     span{Min: orkestrterms.LeastLife, Max: float64(orkestrterms.MostLife)},
		Command:     span{Min: toolset.LeastTimeout, Max: l.MaxSeconds, Default: new(command(c).Seconds())},
		Sandboxes:   make(map[string]int),
		Concurrency: concurrency{Running: l.Sandboxes[string(sandbox.Running)]},
		Budget:      l.Budget,
		Project:     l.Project,
	}
	for state, n := range l.Sandboxes {
		out.Sandboxes[orkestrterms.Status(sandbox.State(state))] += n
	}
	if l.Project != nil {
		if q, ok := l.Project.Quotas[project.Running.String()]; ok {
			out.Concurrency.Limit = new(int(q))
		}
	}
	return handle(out)
}
