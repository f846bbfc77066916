// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"

	"sandpit.dev/api/daytona"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
)

// DaytonaConfig configures the coat for Daytona's clients.
type DaytonaConfig struct {
	Enabled bool `yaml:"enabled"` // false: nothing is served below /daytona
}

// newDaytona returns the coat, which is nothing where it is not to be.
func (p *surfaceParts) newDaytona(g *guard.Guard, services service.Services) (serve http.Handler, end func(), err error) {
	if !p.daytona.Enabled {
		return nil, func() {}, nil
	}
	a, err := daytona.New(daytona.Options{
		Services: services, Guard: g, Previews: linkMaker{p.links.ports}, Files: p.links.files, Target: toolset.OnlyRegion, Version: p.version, Memory: p.memory,
	})
	if err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}
