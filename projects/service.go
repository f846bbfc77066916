// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package projects makes, shows, changes and deletes projects, and says what one may have, has and has left. It knows
// no coat; that projects keep to their quotas is the work of the store that it is given.
package projects

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
)

// Service is safe for concurrent use.
type Service struct {
	store  store.Store
	keeper *quota.Keeper
	log    *slog.Logger
}

// New makes a Service over a store, which is one that the keeper holds to quotas. A nil log is silent.
func New(s store.Store, k *quota.Keeper, log *slog.Logger) *Service {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Service{store: s, keeper: k, log: log}
}

// Status is a project with what it has.
type Status struct {
	project.Project
	Use project.Amounts
	// CommandsEnd is when the count of commands begins anew.
	CommandsEnd time.Time
	// MonthEnd is when budgets begin anew.
	MonthEnd time.Time
}

// Left returns how much of a resource a project may still have; ok is false where nothing bounds it.
func (s *Status) Left(r project.Resource) (left float64, ok bool) {
	if s.Quotas[r] == 0 {
		return 0, false
	}
	return max(0, s.Quotas[r]-s.Use[r]), true
}

// Limits returns the caller's own project, which has no quotas where it has no record. Every caller may ask.
func (s *Service) Limits(ctx context.Context, c access.Caller) (Status, error) {
	if err := c.RequireProject(); err != nil {
		return Status{}, err
	}
	out, err := s.get(ctx, c.Project)
	if fault.Is(err, fault.NotFound) {
		err = s.store.View(ctx, func(tx store.Tx) (err error) {
			out, err = s.status(tx, &project.Project{Name: c.Project})
			return err
		})
	}
	return out, err
}

// Get returns a project: the caller's own, or with the scope server:admin any.
func (s *Service) Get(ctx context.Context, c access.Caller, name string) (Status, error) {
	if err := Within(c, name); err != nil {
		return Status{}, err
	}
	return s.get(ctx, name)
}

// Within returns nil if a caller may see a project: its own, or with the scope server:admin any.
func Within(c access.Caller, name string) error {
	if err := c.RequireProject(); err != nil {
		return err
	}
	if name == c.Project {
		return nil
	}
	return c.Require(access.ServerAdmin)
}

func (s *Service) get(ctx context.Context, name string) (out Status, err error) {
	err = s.store.View(ctx, func(tx store.Tx) (err error) {
		p, err := tx.Projects().Get(name)
		if err != nil {
			return err
		}
		out, err = s.status(tx, p)
		return err
	})
	return out, err
}

func (s *Service) status(tx store.Tx, p *project.Project) (Status, error) {
	now := s.keeper.Now().UTC()
	out := Status{Project: *p, CommandsEnd: now.Truncate(24 * time.Hour).Add(24 * time.Hour)}
	_, out.MonthEnd = project.Month(now)
	var err error
	if out.Use, err = tx.Projects().Use(p.Name); err != nil {
		return out, err
	}
	if p.Quotas[project.CPUSeconds] > 0 || p.Quotas[project.MemorySeconds] > 0 {
		spent, err := quota.Spent(tx, p.Name, now)
		if err != nil {
			return out, err
		}
		out.Use[project.CPUSeconds], out.Use[project.MemorySeconds] = spent[project.CPUSeconds], spent[project.MemorySeconds]
	}
	if p.Quotas[project.Commands] == 0 {
		return out, nil
	}
	n, err := tx.Projects().Commands(p.Name, project.Day(now))
	out.Use[project.Commands] = float64(n)
	return out, err
}

// List returns the projects that a caller may see, by name: its own, or with the scope server:admin all.
func (s *Service) List(ctx context.Context, c access.Caller) (all []Status, err error) {
	if err := c.RequireProject(); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx store.Tx) error {
		list, err := tx.Projects().List()
		if err != nil {
			return err
		}
		for _, p := range list {
			if Within(c, p.Name) != nil {
				continue
			}
			one, err := s.status(tx, p)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// Defaults returns the quotas of a project that is made without being given any.
func (s *Service) Defaults() project.Amounts { return s.keeper.New() }

// Create makes a project, with the quotas of a new one where it is given none (nil). It needs the scope server:admin.
func (s *Service) Create(ctx context.Context, c access.Caller, name string, quotas map[string]float64) (Status, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return Status{}, err
	}
	if err := access.CheckProject("name", name); err != nil {
		return Status{}, err
	}
	p := &project.Project{Name: name, CreatedAt: s.keeper.Now().UTC().Truncate(time.Microsecond), CreatedBy: c.Actor, Quotas: s.keeper.New()}
	if quotas != nil {
		var err error
		if p.Quotas, err = project.Parse("quotas", quotas); err != nil {
			return Status{}, err
		}
	}
	if err := s.store.Room(); err != nil {
		return Status{}, err
	}
	var out Status
	err := s.store.Update(ctx, func(tx store.Tx) (err error) {
		if err := tx.Projects().Insert(p); err != nil {
			return err
		}
		out, err = s.status(tx, p)
		return err
	})
	if err == nil {
		s.log.Info("a project was made", "project", name, "by", c.Actor)
	}
	return out, err
}

// Change sets the quotas that are given by name; zero takes one away. One that is lower than what there is refuses
// more, and ends nothing. It needs the scope server:admin.
func (s *Service) Change(ctx context.Context, c access.Caller, name string, quotas map[string]float64) (Status, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return Status{}, err
	}
	to, err := project.Parse("quotas", quotas)
	if err != nil {
		return Status{}, err
	}
	var out Status
	err = s.store.Update(ctx, func(tx store.Tx) error {
		p, err := tx.Projects().Get(name)
		if err != nil {
			return err
		}
		for named := range quotas {
			if r, ok := project.Named(named); ok {
				p.Quotas[r] = to[r]
			}
		}
		if err := tx.Projects().Update(p); err != nil {
			return err
		}
		out, err = s.status(tx, p)
		return err
	})
	if err == nil {
		s.log.Info("the quotas of a project were changed", "project", name, "quotas", out.Quotas.ByName(), "by", c.Actor)
	}
	return out, err
}

// Delete deletes a project to which nothing belongs any more, else it is fault.Conflict. What happened in it stays on
// record. It needs the scope server:admin.
func (s *Service) Delete(ctx context.Context, c access.Caller, name string) error {
	if err := c.Require(access.ServerAdmin); err != nil {
		return err
	}
	if name == access.DefaultProject {
		return fault.New(fault.Conflict, "the project %s is that of the server's own admin token, and stays", name)
	}
	err := s.store.Update(ctx, func(tx store.Tx) error {
		has, err := tx.Projects().Contents(name)
		if err != nil {
			return err
		}
		if len(has) > 0 {
			return fault.New(fault.Conflict, "the project %s is not empty: it has %s", name, listed(has)).WithRemedy("delete them first")
		}
		return tx.Projects().Delete(name)
	})
	if err == nil {
		s.log.Info("a project was deleted", "project", name, "by", c.Actor)
	}
	return err
}

// listed says how many there are of each kind.
func listed(has map[string]int) string {
	var all []string
	for kind, n := range has {
		if n == 1 {
			kind = strings.TrimSuffix(strings.Replace(kind, "sandboxes", "sandboxs", 1), "s")
		}
		all = append(all, fmt.Sprint(n, " ", kind))
	}
	slices.SortFunc(all, func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, ' '):], b[strings.IndexByte(b, ' '):])
	})
	return strings.Join(all, ", ")
}
