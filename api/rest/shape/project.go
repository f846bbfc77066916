// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"sandpit.dev/access/project"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/projects"
)

// Project returns a project with its quotas and what is used of them.
func Project(p *projects.Status) v1.Project {
	out := v1.Project{Name: p.Name, CreatedAt: p.CreatedAt.UTC(), CreatedBy: p.CreatedBy, CommandsResetAt: p.CommandsEnd, BudgetResetAt: p.MonthEnd}
	var quotas, used, left amountsOn
	for _, r := range project.Resources() {
		used.set(r, p.Use[r])
		if n, ok := p.Left(r); ok {
			quotas.set(r, p.Quotas[r])
			left.set(r, n)
		}
	}
	out.Quotas, out.Used, out.Left = quotas.Amounts, used.Amounts, left.Amounts
	return out
}

// amountsOn is a v1.Amounts whose fields are set by resource.
type amountsOn struct{ v1.Amounts }

func (a *amountsOn) set(r project.Resource, v float64) {
	if r == project.CPU {
		a.CPUCores = &v
		return
	}
	for of, field := range map[project.Resource]**int64{
		project.Sandboxes: &a.Sandboxes, project.Running: &a.Running, project.Memory: &a.MemoryMB, project.Processes: &a.Processes,
		project.Disk: &a.DiskMB, project.Snapshots: &a.Snapshots, project.Volumes: &a.Volumes, project.Commands: &a.CommandsPerDay,
		project.CPUSeconds: &a.CPUSecondsPerMonth, project.MemorySeconds: &a.MemoryGiBSecondsPerMonth,
	} {
		if of == r {
			*field = new(int64(v))
		}
	}
}
