// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota

import "sandpit.dev/access/project"

// ledger is what projects take, as the last commit left it. What a project takes is read from its records the first time that
// it is asked for, and follows each change from then on. It belongs to who holds the keeper's turn.
type ledger struct {
	sums   map[string]project.Amounts // by project; "": of all together
	months map[string]month
}

func (l *ledger) setSum(name string, a project.Amounts) {
	if l.sums == nil {
		l.sums = make(map[string]project.Amounts)
	}
	l.sums[name] = a
}

func (l *ledger) setMonth(name string, m month) {
	if l.months == nil {
		l.months = make(map[string]month)
	}
	l.months[name] = m
}

// put takes over what a transaction has read and changed.
func (l *ledger) put(of ledger) {
	for name, a := range of.sums {
		l.setSum(name, a)
	}
	for name, m := range of.months {
		l.setMonth(name, m)
	}
}

// sum returns what is known of what a project takes, as the transaction left it.
func (t *keptTx) sum(name string) (a project.Amounts, known bool) {
	if a, known = t.own.sums[name]; !known {
		a, known = t.k.ledger.sums[name]
	}
	return a, known
}

// use returns what a project takes ("": all of them together).
func (t *keptTx) use(name string) (project.Amounts, error) {
	a, known := t.sum(name)
	if known {
		return a, nil
	}
	a, err := t.Tx.Projects().Use(name)
	if err == nil {
		t.own.setSum(name, a)
	}
	return a, err
}

// follows reports whether what changes of a project's records has to be known: it may be refused, or is added up.
func (t *keptTx) follows(name string) (bool, error) {
	if t.adds(name) {
		return true, nil
	}
	return t.bound(name)
}

// adds reports whether what a project takes is added up.
func (t *keptTx) adds(name string) bool {
	_, one := t.sum(name)
	_, all := t.sum("")
	return one || all
}

// anySum reports whether any project's is.
func (t *keptTx) anySum() bool { return len(t.own.sums)+len(t.k.ledger.sums) > 0 }

// add adds what a change of a project's records, which is made, takes more or less.
func (t *keptTx) add(name string, before, after project.Amounts) {
	for _, of := range [...]string{name, ""} {
		a, known := t.sum(of)
		if !known {
			continue
		}
		for r := range a {
			a[r] += after[r] - before[r]
		}
		t.own.setSum(of, a)
	}
}
