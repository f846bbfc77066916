// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/api/admitted"
	"sandpit.dev/fault"
	"sandpit.dev/internal/admission"
)

// AtOnceConfig bounds what the server begins at once; zero fields take the value named behind them. What comes
// beyond it waits, and what would wait too long is refused when it comes.
type AtOnceConfig struct {
	Creates  int           `yaml:"creates"`  // creates, forks and starts; 16 for each processor
	Commands int           `yaml:"commands"` // commands, until their processes are there; 64 for each processor
	Waiting  int           `yaml:"waiting"`  // most of each that wait, of one project half of it; 4096
	Wait     time.Duration `yaml:"wait"`     // what would wait longer is refused; 1m
}

const (
	createsAtOnce  = 16
	commandsAtOnce = 64
	// commandLease is how long the beginning of a command can take of the host; after that it waits
	// for something else.
	commandLease = 2 * time.Second
)

func (c AtOnceConfig) check() error {
	for name, n := range map[string]int{"creates": c.Creates, "commands": c.Commands, "waiting": c.Waiting} {
		if n < 0 || n > 1_000_000 {
			return fault.InvalidField("limits.at_once."+name, "%d is not 1 to 1000000", n).WithRemedy("leave it out for the default")
		}
	}
	if c.Wait < 0 || c.Wait > time.Hour {
		return fault.InvalidField("limits.at_once.wait", "%v is not a time up to 1h", c.Wait).WithRemedy("leave it out for the default")
	}
	return nil
}

// gates makes the gates, with their figures.
func (c AtOnceConfig) gates(reg prometheus.Registerer) admitted.Gates {
	if c.Creates == 0 {
		c.Creates = createsAtOnce * runtime.NumCPU()
	}
	if c.Commands == 0 {
		c.Commands = commandsAtOnce * runtime.NumCPU()
	}
	gate := func(what string, o admission.Options) *admission.Gate {
		o.What, o.Waiting, o.Wait = what, c.Waiting, c.Wait
		g := admission.New(o)
		labels := prometheus.Labels{"of": what}
		reg.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sandpit_admission_taken", Help: "Places that are taken, of those who begin something.", ConstLabels: labels}, func() float64 { return float64(g.Figures().Taken) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sandpit_admission_waiting", Help: "Requests that wait for a place to begin something.", ConstLabels: labels}, func() float64 { return float64(g.Figures().Waiting) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sandpit_admission_refused_total", Help: "Requests that were refused since they would have waited too long for a place.", ConstLabels: labels}, func() float64 { return float64(g.Figures().Refused) }),
		)
		return g
	}
	return admitted.Gates{
		Creates:  gate("creates", admission.Options{AtOnce: c.Creates}),
		Commands: gate("commands", admission.Options{AtOnce: c.Commands, Lease: commandLease}),
	}
}
