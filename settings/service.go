// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Prepare checks values, and returns what puts them in force, which cannot fail. Its error is about the
// names of settings.
type Prepare func(Values) (apply func(), err error)

// Setting is one setting as it is.
type Setting struct {
	Name      string
	About     string
	Value     any // int64, bool, string or []string
	Source    Source
	Holds     Scope
	Otherwise any       // what holds when what a call set is taken back
	ChangedAt time.Time // of what a call set, and by whom
	ChangedBy string
}

// Service keeps what calls set. It is safe for concurrent use.
type Service struct {
	store   store.Store
	base    Base
	prepare Prepare
	now     func() time.Time
	log     *slog.Logger

	configured []Configured

	mu     sync.Mutex // one change at a time, from the check until it is in force
	set    map[string]store.Setting
	values Values
}

// Options of a [Service].
type Options struct {
	Base    Base
	Prepare Prepare // required
	// Configuration is what the server started with.
	Configuration []Configured
	Logger        *slog.Logger     // nil: silent
	Now           func() time.Time // nil: time.Now
}

// Open reads what calls have set, and puts it in force over what holds else. What no longer fits, since the file or
// the images are others by now, is left out and told in the log.
func Open(ctx context.Context, st store.Store, o Options) (*Service, error) {
	s := &Service{store: st, base: o.Base, prepare: o.Prepare, configured: o.Configuration, now: o.Now, log: o.Logger, set: make(map[string]store.Setting)}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var all []store.Setting
	if err := st.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Settings().List()
		return err
	}); err != nil {
		return nil, err
	}
	s.values = o.Base.Values
	apply, err := s.prepare(s.values)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		next := s.values
		err := s.read(&next, r.Name, json.RawMessage(r.Value))
		var fits func()
		if err == nil {
			fits, err = s.prepare(next)
		}
		if err != nil {
			s.log.Warn("a setting that a call made does not hold", "setting", r.Name, "error", err)
			continue
		}
		s.values, apply, s.set[r.Name] = next, fits, r
	}
	apply()
	return s, nil
}

// List returns all settings, in the order of the list. It needs the scope server:admin.
func (s *Service) List(_ context.Context, c access.Caller) ([]Setting, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(), nil
}

func (s *Service) list() []Setting {
	all := make([]Setting, 0, len(definitions()))
	for _, d := range definitions() {
		one := Setting{Name: d.name, About: d.about, Value: d.get(&s.values), Holds: d.holds, Source: s.base.Sources[d.name], Otherwise: d.get(&s.base.Values)}
		if one.Source == "" {
			one.Source = Default
		}
		if r, ok := s.set[d.name]; ok {
			one.Source, one.ChangedAt, one.ChangedBy = Set, r.ChangedAt, r.ChangedBy
		}
		all = append(all, one)
	}
	return all
}

// Change sets what the patch has by name, all of it or nothing, and puts it in force before it returns; null takes
// back what a call has set. It needs the scope server:admin.
func (s *Service) Change(ctx context.Context, c access.Caller, patch map[string]json.RawMessage) ([]Setting, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, set := s.base.Values, make(map[string]store.Setting)
	for name, r := range s.set {
		set[name] = r
	}
	at := s.now().UTC().Truncate(time.Microsecond)
	var puts []store.Setting
	var drops []string
	for _, d := range definitions() { // in the order of the list, for the first error
		raw, ok := patch[d.name]
		switch {
		case ok && isNull(raw):
			delete(set, d.name)
			drops = append(drops, d.name)
		case ok:
			var v Values
			if err := d.set(&v, raw); err != nil {
				return nil, err
			}
			text, err := json.Marshal(d.get(&v))
			if err != nil {
				return nil, err
			}
			r := store.Setting{Name: d.name, Value: string(text), ChangedAt: at, ChangedBy: c.Actor}
			set[d.name] = r
			puts = append(puts, r)
		}
	}
	for name := range patch {
		if _, ok := named(name); !ok {
			return nil, unknown(name)
		}
	}
	for name, r := range set {
		if err := s.read(&next, name, json.RawMessage(r.Value)); err != nil {
			return nil, err
		}
	}
	apply, err := s.prepare(next)
	if err != nil {
		return nil, err
	}
	if len(puts)+len(drops) == 0 {
		return s.list(), nil
	}
	if err := s.store.Update(ctx, func(tx store.Tx) error {
		for _, r := range puts {
			if err := tx.Settings().Put(r); err != nil {
				return err
			}
		}
		for _, name := range drops {
			if err := tx.Settings().Delete(name); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	apply()
	s.values, s.set = next, set
	for _, r := range puts {
		s.log.Info("a setting was changed", "setting", r.Name, "value", r.Value, "by", c.Actor)
	}
	for _, name := range drops {
		s.log.Info("a setting was taken back", "setting", name, "by", c.Actor)
	}
	return s.list(), nil
}

// read reads one value into v.
func (s *Service) read(v *Values, name string, raw json.RawMessage) error {
	d, ok := named(name)
	if !ok {
		return unknown(name)
	}
	return d.set(v, raw)
}

func named(name string) (definition, bool) {
	all := definitions()
	at := slices.IndexFunc(all, func(d definition) bool { return d.name == name })
	if at < 0 {
		return definition{}, false
	}
	return all[at], true
}

// Names returns the names of all settings.
func Names() []string {
	var all []string
	for _, d := range definitions() {
		all = append(all, d.name)
	}
	return all
}

func unknown(name string) error {
	err := fault.InvalidField(sandbox.Clip(name, 40), "there is no such setting")
	if near := spelling.Nearest(name, Names()); near != "" {
		return err.WithRemedy("did you mean %s?", near)
	}
	return err.WithRemedy("the settings are %s", strings.Join(Names(), ", "))
}
