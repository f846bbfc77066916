// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"hash/maphash"
	"sync"
	"time"

	"sandpit.dev/network/policy"
)

// Quota bounds the questions for names that a sandbox makes up: those below a wildcard of its
// list, or below a name of it by labels such as _tcp. Whoever serves such a domain hears
// each of them, so they carry data out. It holds for each rule of the list by itself.
// The zero value is [DefaultQuota].
type Quota struct {
	Names              int // different names at once
	NamesPerMinute     int // and so many more later
	Questions          int // questions at once, for whichever name: their order tells something, too
	QuestionsPerMinute int
}

// DefaultQuota is more than package managers and browsers ask for, and some 100 bytes a
// second for who uses names to carry data.
func DefaultQuota() Quota {
	return Quota{Names: 256, NamesPerMinute: 30, Questions: 2000, QuestionsPerMinute: 600}
}

// MaxQuota is the most of each field of a quota, for those who want none.
const MaxQuota = 1_000_000

// maxKnown is how many names of a rule are known as asked for already. Beyond it all are
// forgotten, and count again.
const maxKnown = 1024

// quotas is what is left of the quota, by rule.
type quotas struct {
	of   Quota
	seed maphash.Seed

	mu    sync.Mutex
	rules map[string]*allowance
}

// allowance is what is left of a rule's quota.
type allowance struct {
	names, questions bucket
	known            map[uint64]struct{} // by hash: names are long
}

func newQuotas(q Quota) *quotas {
	if q == (Quota{}) {
		q = DefaultQuota()
	}
	return &quotas{of: q, seed: maphash.MakeSeed(), rules: make(map[string]*allowance)}
}

// take counts a question for a name. When it is one too many it returns the rule below which
// that was, else "". What is refused costs nothing.
func (q *quotas) take(p *policy.Policy, name string, at time.Time) (rule string) {
	if rule = p.Below(name); rule == "" {
		return ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.rules[rule]
	if a == nil {
		if len(q.rules) >= maxRules { // of policies that were in force before, most of them
			clear(q.rules)
		}
		a = &allowance{
			names:     bucket{left: float64(q.of.Names), at: at},
			questions: bucket{left: float64(q.of.Questions), at: at},
			known:     make(map[uint64]struct{}),
		}
		q.rules[rule] = a
	}
	a.names.fill(q.of.Names, q.of.NamesPerMinute, at)
	a.questions.fill(q.of.Questions, q.of.QuestionsPerMinute, at)
	sum := maphash.String(q.seed, name)
	_, known := a.known[sum]
	if a.questions.left < 1 || !known && a.names.left < 1 {
		return rule
	}
	a.questions.left--
	if !known {
		a.names.left--
		if len(a.known) >= maxKnown {
			clear(a.known)
		}
		a.known[sum] = struct{}{}
	}
	return ""
}

// maxRules is how many rules are kept account of: more than one policy has.
const maxRules = 1024

// bucket holds tokens, which come back with time.
type bucket struct {
	left float64
	at   time.Time // when it was filled
}

func (b *bucket) fill(most, perMinute int, at time.Time) {
	if gone := at.Sub(b.at); gone > 0 {
		b.left = min(float64(most), b.left+gone.Minutes()*float64(perMinute))
		b.at = at
	}
}
