// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"
	"strings"

	"sandpit.dev/api/daytona"
	"sandpit.dev/api/daytona/objects"
	"sandpit.dev/api/gateway"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/orkestr"
	"sandpit.dev/api/service"
)

// WireConfig configures a coat for the clients of another system.
type WireConfig struct {
	Enabled bool `yaml:"enabled"` // false: nothing is served below its path
}

// coat is what serves the clients of another system, below a path of its own.
type coat struct {
	base string
	http.Handler
	close func()
}

// coats returns those that are to be.
func (p *surfaceParts) coats(g *guard.Guard, services service.Services) (all []coat, err error) {
	if p.daytona.Enabled {
		keys := objects.NewKeys(nil)
		a, err := daytona.New(daytona.Options{
			Services: services, Guard: g, Previews: linkMaker{p.links.ports}, Files: p.links.files, Contexts: p.contexts, Keys: keys, Target: toolset.OnlyRegion, Version: p.version, Memory: p.memory,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, coat{daytona.Base, a, a.Close}, coat{strings.TrimSuffix(objects.Root, "/"), objects.New(g, keys, p.contexts), func() {}})
	}
	if p.gateway.Enabled {
		a, err := gateway.New(gateway.Options{Services: services, Guard: g, Memory: p.memory})
		if err != nil {
			return nil, err
		}
		all = append(all, coat{gateway.Base, a, a.Close})
	}
	if p.orkestr.Enabled {
		a, err := orkestr.New(orkestr.Options{
			Services: services, Guard: g, Previews: linkMaker{p.links.ports}, Files: p.links.files, Region: toolset.OnlyRegion, Memory: p.memory,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, coat{orkestr.Base, a, a.Close})
	}
	return all, nil
}
