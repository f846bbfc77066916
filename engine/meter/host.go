// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"sync"
	"time"
)

// HostUse is what the whole host uses, the server and all else included. A figure that is not known is negative.
type HostUse struct {
	CPU         time.Duration // of all processors that were busy, since it came up
	CPUs        int           // processors there are
	MemoryBytes int64         // what programs cannot get any more
	MemorySize  int64
	DiskBytes   int64 // of the disk that the data directory is on
	DiskSize    int64
	Tasks       int64 // processes and threads
	TaskLimit   int64
}

// Host is what the host uses.
type Host struct {
	HostUse
	Now     Sample   // whose CPU and MemoryPeak say nothing
	History []Sample // the last hour by the minute, oldest first
}

// machine keeps the figures of the host.
type machine struct {
	use func() (HostUse, error) // nil: there are none

	mu           sync.Mutex
	last         HostUse
	now, minute  Sample
	lastOf, ever time.Duration // CPU at now and at minute
	hour         []Sample
}

// host returns the host's figures, nil where they cannot be read.
func (s *Service) host() *Host {
	h, err := s.machine.read(s.now(), false)
	if err != nil {
		s.log.Debug("what the host uses cannot be read", "error", err)
	}
	return h
}

// Host returns what the whole host uses; nil: it cannot be read. It is for who runs the server alone.
func (s *Service) Host() *Host { return s.host() }

// read returns figures that are no older than fresh. Those of a minute are kept.
func (m *machine) read(now time.Time, minute bool) (*Host, error) {
	if m.use == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := now.Sub(m.now.At); minute || age < 0 || age >= fresh {
		u, err := m.use()
		if err != nil {
			return nil, err
		}
		m.now, m.lastOf = m.sample(now, u, m.now, m.lastOf), u.CPU
		if minute {
			m.minute, m.ever = m.sample(now, u, m.minute, m.ever), u.CPU
			m.hour = append(m.hour, m.minute)
			m.hour = m.hour[max(0, len(m.hour)-minutes):]
		}
		m.last = u
	}
	h := &Host{HostUse: m.last, Now: m.now}
	for _, one := range m.hour {
		if now.Sub(one.At) <= time.Hour {
			h.History = append(h.History, one)
		}
	}
	return h, nil
}

// sample returns a sample whose rate is over the time since the one before. Of the first there is none: since the host
// came up would say nothing of now.
func (m *machine) sample(now time.Time, u HostUse, before Sample, cpu time.Duration) Sample {
	s := Sample{At: now, CPUs: -1, MemoryBytes: u.MemoryBytes, MemoryPeak: -1, DiskBytes: u.DiskBytes, Tasks: u.Tasks, Network: noNetwork}
	if d := now.Sub(before.At); !before.At.IsZero() && d > 0 && cpu >= 0 && u.CPU >= cpu {
		s.CPUs = (u.CPU - cpu).Seconds() / d.Seconds()
	}
	return s
}
