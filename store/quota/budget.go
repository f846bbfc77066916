// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// month is what a project has used of its budgets since the month began: what was added up, and what its meters of running
// sandboxes count from when they were added last. Of these it knows sums alone, so that it costs the same for any number.
type month struct {
	begin       time.Time
	cpu, memory float64 // seconds of processors and of GiB that were added up
	// Of running ones together: processors, and GiB; and each times the seconds of the month until which it was
	// added up.
	cpuRate, memoryRate, cpuUntil, memoryUntil float64
}

// add adds what was used.
func (m *month) add(u store.Used) {
	if !u.Time.Before(m.begin) {
		m.cpu += u.CPUSeconds
		m.memory += u.MemorySeconds
	}
}

// meter adds a meter n times: 1, or -1 to take it away.
func (m *month) meter(u *store.UsageMeter, n float64) {
	if u == nil || !u.Running {
		return
	}
	until := max(u.RunUntil.Sub(m.begin).Seconds(), 0)
	cpu, memory := n*u.CPU, n*float64(u.MemoryMB)/1024
	m.cpuRate += cpu
	m.memoryRate += memory
	m.cpuUntil += cpu * until
	m.memoryUntil += memory * until
}

// at returns what is used at a time within the month.
func (m *month) at(now time.Time) (a project.Amounts) {
	s := now.Sub(m.begin).Seconds()
	a[project.CPUSeconds] = m.cpu + max(m.cpuRate*s-m.cpuUntil, 0)
	a[project.MemorySeconds] = m.memory + max(m.memoryRate*s-m.memoryUntil, 0)
	return a
}

// metersAtOnce is how many are read at a time.
const metersAtOnce = 500

// readMonth reads it from the records.
func readMonth(tx store.Tx, name string, begin time.Time) (m month, err error) {
	m.begin = begin
	sums, err := tx.Usage().Sum(store.UsageQuery{Project: name, Since: begin})
	if err != nil {
		return m, err
	}
	for _, u := range sums {
		u.Time = begin
		m.add(u)
	}
	for after := sandbox.ID(""); ; {
		page, err := tx.Usage().Meters(name, after, metersAtOnce)
		if err != nil {
			return m, err
		}
		for _, one := range page {
			m.meter(one, 1)
		}
		if len(page) < metersAtOnce {
			return m, nil
		}
		after = page[len(page)-1].Sandbox
	}
}

// readMonth is readMonth with the meters of sandboxes that the transaction has deleted, which are deleted behind them: until
// then they count, and no list has them.
func (t *keptTx) readMonth(name string, begin time.Time) (month, error) {
	m, err := readMonth(t.Tx, name, begin)
	if err != nil {
		return m, err
	}
	for _, id := range t.gone {
		one, err := t.Tx.Usage().Meter(id)
		if err != nil {
			return m, err
		}
		if one != nil && one.Project == name {
			m.meter(one, 1)
		}
	}
	return m, nil
}

// Spent returns what a project has used of its budgets in the month of a time, until then: CPUSeconds and MemorySeconds.
func Spent(tx store.Tx, name string, now time.Time) (project.Amounts, error) {
	begin, _ := project.Month(now)
	m, err := readMonth(tx, name, begin)
	return m.at(now), err
}

// month returns what is known of a project's month, as the transaction left it.
func (t *keptTx) month(name string) (m month, known bool) {
	if m, known = t.own.months[name]; !known {
		m, known = t.k.ledger.months[name]
	}
	return m, known
}

// afford refuses what would begin to run in a project that has used up a budget.
func (t *keptTx) afford(p *project.Project) error {
	if p == nil || p.Quotas[project.CPUSeconds] == 0 && p.Quotas[project.MemorySeconds] == 0 {
		return nil
	}
	now := t.k.o.Now()
	begin, _ := project.Month(now)
	m, known := t.month(p.Name)
	if !known || !m.begin.Equal(begin) {
		var err error
		if m, err = t.readMonth(p.Name, begin); err != nil {
			return err
		}
		t.own.setMonth(p.Name, m)
	}
	used := m.at(now)
	for _, r := range []project.Resource{project.CPUSeconds, project.MemorySeconds} {
		if q := p.Quotas[r]; q > 0 && used[r] >= q-1e-6 { // sums of fractions are not exact
			return p.Refuse(r, used[r], 0, now)
		}
	}
	return nil
}

// keptUsage has the months follow what is added up.
type keptUsage struct {
	store.Usage
	t *keptTx
}

func (q keptUsage) Add(u store.Used) error {
	if err := q.Usage.Add(u); err != nil {
		return err
	}
	if m, known := q.t.month(u.Project); known {
		m.add(u)
		q.t.own.setMonth(u.Project, m)
	}
	return nil
}

func (q keptUsage) PutMeter(u *store.UsageMeter) error {
	m, known := q.t.month(u.Project)
	if !known {
		return q.Usage.PutMeter(u)
	}
	old, err := q.Meter(u.Sandbox)
	if err != nil {
		return err
	}
	if err := q.Usage.PutMeter(u); err != nil {
		return err
	}
	m.meter(old, -1)
	m.meter(u, 1)
	q.t.own.setMonth(u.Project, m)
	return nil
}

func (q keptUsage) DeleteMeter(id sandbox.ID) error {
	if len(q.t.own.months)+len(q.t.k.ledger.months) == 0 {
		return q.Usage.DeleteMeter(id)
	}
	old, err := q.Meter(id)
	if err != nil {
		return err
	}
	if err := q.Usage.DeleteMeter(id); err != nil || old == nil {
		return err
	}
	if m, known := q.t.month(old.Project); known {
		m.meter(old, -1)
		q.t.own.setMonth(old.Project, m)
	}
	return nil
}
