// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Neighbours is one tenant's command while another attacks. Each has its own project, a token
// of that project, and sandboxes with default limits.
type Neighbours struct {
	Cores   float64  `json:"attacker_cores"` // that the attacker's sandbox may use
	Rounds  int      `json:"rounds"`         // in each of which the victim's command runs quiet and attacked
	Attacks []Attack `json:"attacks"`
}

// Attack is the victim's command, argv ["/bin/true"], without and with one attack.
type Attack struct {
	Name     string   `json:"attack"`
	About    string   `json:"about"`
	Quiet    *Figures `json:"quiet"`
	Attacked *Figures `json:"attacked"`
	// The ratios are of all attacked commands to all quiet ones.
	P50 *float64 `json:"p50_ratio"`
	P99 *float64 `json:"p99_ratio"`
	// Answered and Refused count the requests that the attack made beside its programs.
	Answered int64 `json:"requests_answered"`
	Refused  int64 `json:"requests_refused"`
}

const (
	neighbourRounds = 5
	// neighbourPause lies between two commands of the victim, so that they meet an attack that
	// comes in waves at all of its phases.
	neighbourPause = 15 * time.Millisecond
	neighbourEbb   = 500 * time.Millisecond // after an attack, before it is quiet again
)

// neighbours measures n commands quiet and n attacked, for each attack.
func (s *session) neighbours(ctx context.Context, n int) (_ *Neighbours, err error) {
	victim, err := s.tenant(ctx, "victim")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, victim.leave(context.WithoutCancel(ctx))) }()
	if err := victim.create(ctx, nil); err != nil {
		return nil, err
	}
	// The attackers' clients are threads of this process: the kernel shares the processors between
	// them and the victim's, as it would between processes, and not Go, which lets one have its own for long.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16 * runtime.NumCPU()))
	out := &Neighbours{Rounds: neighbourRounds}
	for _, a := range attacks {
		if s.o.Attacks != nil && !slices.Contains(s.o.Attacks, a.name) {
			continue
		}
		s.tell("beside " + a.about)
		one, cores, err := s.beside(ctx, a, victim, neighbourRounds, max(1, n/neighbourRounds))
		if err == nil {
			err = sleep(ctx, calm) // what was deleted is taken down
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		out.Attacks, out.Cores = append(out.Attacks, one), cores
	}
	return out, nil
}

// beside measures the victim without and with one attack, n commands each in each round.
func (s *session) beside(ctx context.Context, a attack, victim *tenant, rounds, n int) (_ Attack, cores float64, err error) {
	attacker, err := s.tenant(ctx, "attacker")
	if err != nil {
		return Attack{}, 0, err
	}
	defer func() { err = errors.Join(err, attacker.leave(context.WithoutCancel(ctx))) }()
	if err := attacker.create(ctx, a.network); err != nil {
		return Attack{}, 0, err
	}
	if a.prepare != nil {
		if err := a.prepare(ctx, attacker); err != nil {
			return Attack{}, 0, err
		}
	}
	var quiet, attacked series
	command := func(into *series) error {
		for range n {
			if err := sleep(ctx, neighbourPause); err != nil {
				return err
			}
			began := time.Now()
			into.add(since(began, victim.exec(ctx, victim.box, byArgv)))
		}
		return nil
	}
	for range rounds {
		if err := command(&quiet); err != nil {
			return Attack{}, 0, err
		}
		err := attacker.during(ctx, a.run, func() error { return command(&attacked) })
		if err != nil {
			return Attack{}, 0, err
		}
		if err := sleep(ctx, neighbourEbb); err != nil {
			return Attack{}, 0, err
		}
	}
	one := Attack{
		Name: a.name, About: a.about, Quiet: quiet.figures(), Attacked: attacked.figures(),
		Answered: attacker.answered.Load(), Refused: attacker.refused.Load(),
	}
	one.P50, one.P99 = over(one.Attacked.P50, one.Quiet.P50), over(one.Attacked.P99, one.Quiet.P99)
	return one, attacker.cores, nil
}

// over returns a/b, rounded to two decimals, or nil if b is 0.
func over(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	return new(math.Round(a/b*100) / 100)
}

func (x *Neighbours) rows(row func(name string, f *Figures)) {
	if x == nil {
		return
	}
	for _, a := range x.Attacks {
		row("command, in turn with", a.Quiet)
		row("beside "+a.About, a.Attacked)
	}
}

func (x *Neighbours) lines(say func(format string, args ...any)) {
	if x == nil {
		return
	}
	for _, a := range x.Attacks {
		if a.P50 != nil && a.P99 != nil {
			say("beside %s a command takes %.2f times as long at p50 and %.2f times at p99; the attacker's requests: %d answered, %d refused",
				a.About, *a.P50, *a.P99, a.Answered, a.Refused)
		}
	}
}
