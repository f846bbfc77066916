// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Pace is how often who follows is told.
const Pace = 2 * time.Second

// How many may follow at once.
const (
	maxFollowers        = 128
	maxProjectFollowers = 16 // of one project
)

// followers counts who follows, by the project of the caller.
type followers struct {
	mu  sync.Mutex
	all int
	of  map[string]*look
}

// look is what those who follow all sandboxes of a project see. It is read once for all of them, and forgotten with the last.
type look struct {
	followers int // under followers.mu, also those of single sandboxes

	mu   sync.Mutex
	last [2]Report // of the project, and of all projects
}

func (f *followers) enter(project string) (*look, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of[project]
	if l == nil {
		l = &look{}
	}
	if f.all >= maxFollowers || l.followers >= maxProjectFollowers {
		return nil, fault.New(fault.Exhausted, "%d of the project's requests, and %d of all, follow what sandboxes use; %d and %d may at once", l.followers, f.all, maxProjectFollowers, maxFollowers).
			WithRemedy("end one of them, or ask again and again without follow")
	}
	f.all++
	l.followers++
	f.of[project] = l
	return l, nil
}

func (f *followers) leave(project string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	l := f.of[project]
	if l.followers--; l.followers == 0 {
		delete(f.of, project)
	}
}

// Follow passes what a sandbox uses to send, at once and then every [Pace], until send fails, ctx is done, or the sandbox is
// gone, which is fault.NotFound. The hour is in the first alone. It is no use of the sandbox, which may stop and start meanwhile.
// Those who follow are told at the same moments, so that a sandbox is read once for all of them. It starts no goroutine.
func (s *Service) Follow(ctx context.Context, c access.Caller, ref string, send func(Stats) error) error {
	one, err := s.Stats(ctx, c, ref)
	if err != nil {
		return err
	}
	ref = string(one.Sandbox.ID) // whatever it is called later
	if _, err := s.followers.enter(c.Project); err != nil {
		return err
	}
	defer s.followers.leave(c.Project)
	for {
		if err := send(one); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		if one, err = s.Stats(ctx, c, ref); err != nil {
			return err
		}
		one.History = nil
	}
}

// FollowAll is Follow of what [Service.All] returns. Sandboxes come and go in it.
func (s *Service) FollowAll(ctx context.Context, c access.Caller, allProjects bool, send func(Report) error) error {
	project, err := whose(c, allProjects)
	if err != nil {
		return err
	}
	l, err := s.followers.enter(c.Project)
	if err != nil {
		return err
	}
	defer s.followers.leave(c.Project)
	for first := true; ; first = false {
		r, err := s.lookAt(ctx, l, project)
		if err != nil {
			return err
		}
		if r = s.withHost(c, r); !first {
			r = r.withoutHour()
		}
		if err := send(r); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
}

// lookAt returns a report that is no older than fresh.
func (s *Service) lookAt(ctx context.Context, l *look, project string) (Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := &l.last[0]
	if project == "" {
		last = &l.last[1]
	}
	if age := s.now().Sub(last.Sum.At); age >= 0 && age < fresh {
		return *last, nil
	}
	r, err := s.report(ctx, project)
	if err == nil {
		*last = r
	}
	return r, err
}

func (r Report) withoutHour() Report {
	items := make([]Stats, len(r.Items))
	for n, one := range r.Items {
		items[n] = Stats{Sandbox: one.Sandbox, Now: one.Now}
	}
	r.Items, r.History = items, nil
	if r.Host != nil {
		h := *r.Host
		h.History, r.Host = nil, &h
	}
	return r
}

// wait waits for the next moment at which all who follow are told.
func (s *Service) wait(ctx context.Context) error {
	now := time.Now()
	next := time.NewTimer(now.Truncate(Pace).Add(Pace).Sub(now))
	defer next.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-next.C:
		return nil
	}
}
