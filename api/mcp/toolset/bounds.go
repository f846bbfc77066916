// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// LimitsShape is what holds for all sandboxes. Budget is null where the project has none.
type LimitsShape struct {
	Sizes          map[string]Sized `json:"sizes"`
	Default        Amounts          `json:"default"`
	Least          Amounts          `json:"least"`
	Most           Amounts          `json:"most"`
	Networks       []string         `json:"networks"` // that a sandbox can have here
	NetworkDefault string           `json:"network_default"`
	NetworkReason  string           `json:"network_reason,omitempty"` // why there are no more
	CommandSeconds float64          `json:"command_timeout_seconds"`
	MaxSeconds     float64          `json:"max_command_timeout_seconds"`
	Root           bool             `json:"root_allowed"`
	Sandboxes      map[string]int   `json:"sandboxes"`
	InUse          Amounts          `json:"in_use"` // what those that run may take together
	Budget         *BudgetShape     `json:"budget"`
	Server         serverShape      `json:"server"`
	Project        *ProjectShape    `json:"project,omitempty"`
}

// ProjectShape is what the caller's project may have, has and has left, by the resource's name. What has no quota is not in
// Quotas and Left.
type ProjectShape struct {
	Name    string             `json:"name"`
	Quotas  map[string]float64 `json:"quotas"`
	Used    map[string]float64 `json:"used"`
	Left    map[string]float64 `json:"left"`
	ResetAt string             `json:"commands_reset_at"`
}

// BudgetShape is what the caller's project may use in a month, has used and has left. What has no bound is null.
type BudgetShape struct {
	CPU     *SpentShape `json:"vcpu_seconds"`
	Memory  *SpentShape `json:"gib_seconds"`
	ResetAt string      `json:"resets_at"`
}

// SpentShape is one budget.
type SpentShape struct {
	Limit float64 `json:"limit"`
	Used  float64 `json:"used"`
	Left  float64 `json:"left"`
}

// String says in words what is left of a budget, which may be nil.
func (b *BudgetShape) String() string {
	if b == nil {
		return "no budget"
	}
	var all []string
	for _, one := range []struct {
		of   *SpentShape
		what string
	}{{b.CPU, "vCPU-seconds"}, {b.Memory, "GiB-seconds"}} {
		if one.of != nil {
			all = append(all, fmt.Sprintf("%s of %s %s", Decimal(one.of.Left), Decimal(one.of.Limit), one.what))
		}
	}
	return "budget left until " + b.ResetAt + ": " + strings.Join(all, ", ")
}

// budgetOf returns the budget of a project, or nil.
func budgetOf(quotas, use project.Amounts, end time.Time) *BudgetShape {
	b := &BudgetShape{ResetAt: TimeText(end)}
	for r, to := range map[project.Resource]**SpentShape{project.CPUSeconds: &b.CPU, project.MemorySeconds: &b.Memory} {
		if quotas[r] > 0 {
			*to = &SpentShape{quotas[r], use[r], max(0, quotas[r]-use[r])}
		}
	}
	if b.CPU == nil && b.Memory == nil {
		return nil
	}
	return b
}

// String says what is left in words.
func (p *ProjectShape) String() string {
	var all []string
	for _, r := range project.Resources() {
		if q, ok := p.Quotas[r.String()]; ok {
			all = append(all, fmt.Sprintf("%s %s of %s left", r, Decimal(p.Left[r.String()]), Decimal(q)))
		}
	}
	if len(all) == 0 {
		return fmt.Sprintf("your project %s has no quotas", p.Name)
	}
	return fmt.Sprintf("your project %s: %s", p.Name, strings.Join(all, ", "))
}

// project returns the caller's project and its budget; nil where nobody keeps records of projects, or it has none.
func (c *Call) project(ctx context.Context) (*ProjectShape, *BudgetShape, error) {
	if c.Projects == nil {
		return nil, nil, nil
	}
	s, err := c.Projects.Limits(ctx, c.Caller)
	if err != nil {
		return nil, nil, err
	}
	out := &ProjectShape{Name: s.Name, Quotas: make(map[string]float64), Used: make(map[string]float64), Left: make(map[string]float64), ResetAt: TimeText(s.CommandsEnd)}
	for _, r := range project.Resources() {
		out.Used[r.String()] = s.Use[r]
		if left, ok := s.Left(r); ok {
			out.Quotas[r.String()], out.Left[r.String()] = s.Quotas[r], left
		}
	}
	return out, budgetOf(s.Quotas, s.Use, s.MonthEnd), nil
}

// serverShape is what server it is, and what it cannot do on this host.
type serverShape struct {
	Version string            `json:"version"`
	Runtime string            `json:"runtime"`
	Cannot  map[string]string `json:"cannot,omitempty"` // why, by what
}

// Amounts are what a sandbox may take.
type Amounts struct {
	CPUs     float64 `json:"cpus"`
	MemoryMB int     `json:"memory_mb"`
	DiskMB   int     `json:"disk_mb"`
	Pids     int     `json:"pids"`
}

// Sized is what the name of a size stands for.
type Sized struct {
	CPUs     float64 `json:"cpus"`
	MemoryMB int     `json:"memory_mb"`
}

// SizesText shows the sizes in words.
func (c *Call) SizesText() string {
	var all []string
	for _, s := range c.SizeTable() {
		all = append(all, fmt.Sprintf("%s %s CPU, %d MiB", s.Name, Decimal(s.CPU), s.MemoryMB))
	}
	return strings.Join(all, "; ")
}

// String shows them in words.
func (a Amounts) String() string {
	return fmt.Sprintf("%s CPU, %d MiB memory, %d MiB disk, %d processes", Decimal(a.CPUs), a.MemoryMB, a.DiskMB, a.Pids)
}

// AllLimits asks what holds, and how much is in use.
func (c *Call) AllLimits(ctx context.Context) (LimitsShape, error) {
	i, err := c.Server.Info(ctx, c.Caller)
	if err != nil {
		return LimitsShape{}, err
	}
	d := i.Defaults
	out := LimitsShape{
		Sizes:          make(map[string]Sized),
		Default:        Amounts{d.Limits.CPU, d.Limits.MemoryMB, d.Limits.DiskMB, d.Limits.Pids},
		Least:          Amounts{sandbox.MinCPU, sandbox.MinMemoryMB, sandbox.MinDiskMB, sandbox.MinPids},
		Most:           Amounts{d.Most.CPU, d.Most.MemoryMB, d.Most.DiskMB, d.Most.Pids},
		NetworkDefault: string(c.Networks.DefaultNetwork().Mode),
		Server:         serverShape{Version: i.Version, Runtime: i.Default, Cannot: make(map[string]string)},
		CommandSeconds: d.CommandTimeout.Seconds(), MaxSeconds: d.MaxCommandTimeout.Seconds(), Root: !d.ForbidRoot,
		Sandboxes: make(map[string]int),
	}
	for _, s := range c.SizeTable() {
		out.Sizes[s.Name] = Sized{s.CPU, s.MemoryMB}
	}
	out.Networks = networks(c.Networks)
	if !slices.Contains(out.Networks, string(sandbox.NetworkOpen)) {
		out.NetworkReason = "this server's operator allows no more"
	}
	for _, r := range i.Runtimes {
		for name, f := range r.Features {
			if r.Name == i.Default && f.Why != nil {
				out.Server.Cannot[name] = fault.As(f.Why).Message
			}
		}
	}
	if why := out.Server.Cannot[engine.FeatureNetwork]; why != "" {
		out.Networks, out.NetworkReason = out.Networks[:1], why
	}
	for state, n := range i.Counts {
		if n > 0 {
			out.Sandboxes[string(state)] = n
		}
	}
	running, err := c.Sandboxes.List(ctx, c.Caller, engine.SandboxesRequest{States: []sandbox.State{sandbox.Running}, Limit: engine.MaxPage})
	if err != nil {
		return LimitsShape{}, err
	}
	for _, s := range running.Items {
		out.InUse.CPUs += s.Limits.CPU
		out.InUse.MemoryMB += s.Limits.MemoryMB
		out.InUse.DiskMB += s.Limits.DiskMB
		out.InUse.Pids += s.Limits.Pids
	}
	out.Project, out.Budget, err = c.project(ctx)
	return out, err
}

func networks(s service.Networks) []string {
	var out []string
	for _, m := range s.Networks() {
		out = append(out, string(m))
	}
	return out
}

// Size reads the argument size into limits: its CPU and its memory, where they have none.
func (c *Call) Size(l *sandbox.Limits) {
	if !c.Args.Has("size") {
		return
	}
	s, err := c.SizeTable().Named(c.Args.Text("size"))
	if err != nil {
		c.Args.Add("size", "%s", fault.As(err).Fields[0].Message)
		return
	}
	*l = l.Or(sandbox.Limits{CPU: s.CPU, MemoryMB: s.MemoryMB})
}
