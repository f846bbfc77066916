// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Info is what a server is and can do.
type Info struct {
	Version  string
	Since    time.Time // when this server began
	Default  string    // the runtime of a create that names none
	Runtimes []RuntimeInfo
	Defaults Defaults
	Counts   map[sandbox.State]int // of the caller's project
	Pools    []prewarm.PoolInfo
}

// RuntimeInfo is what one runtime can do on this host now.
type RuntimeInfo struct {
	Name     string
	Features map[string]FeatureInfo // each that there is, by its name
	Err      error                  // why it could not be asked
}

// FeatureInfo is whether a runtime can do something.
type FeatureInfo struct {
	Supported bool
	Why       error // why it is not supported, and how to mend that; nil: it is not known
}

// FeatureNetwork is the name of the feature that sandboxes have a network.
const FeatureNetwork = string(runtime.Network)

// probeBound bounds what Info waits for one driver.
const probeBound = 10 * time.Second

// Info asks every runtime what works.
func (e *Engine) Info(ctx context.Context, c access.Caller) (Info, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return Info{}, err
	}
	defer e.group.Leave()
	info := Info{Version: e.version, Since: e.since, Default: e.core.Default, Defaults: e.Defaults(), Pools: e.pools.Info()}
	for _, n := range e.core.RuntimeNames() {
		caps, err := e.capabilities(ctx, n)
		r := RuntimeInfo{Name: n, Features: make(map[string]FeatureInfo), Err: err}
		for _, f := range runtime.Features() {
			why, known := caps[f]
			r.Features[string(f)] = FeatureInfo{Supported: known && why == nil, Why: why}
		}
		info.Runtimes = append(info.Runtimes, r)
	}
	err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		info.Counts, err = tx.Sandboxes().Count(store.SandboxQuery{Project: c.Project})
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// MostCommandTime is the longest time limit that a command may have here.
func (e *Engine) MostCommandTime() time.Duration { return e.settings.Load().MaxCommandTimeout }
