// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/update"
)

type updateEnv struct {
	Ref  string `path:"id"`
	Body wire.Env
}

// updateEnv changes the variables of commands that begin afterwards.
func (a *API) updateEnv(ctx context.Context, c *httpapi.Call, in *updateEnv) (wire.Nothing, error) {
	b := &in.Body
	p := update.Patch{EnvSet: b.Set, EnvUnset: b.Unset}
	if prefix := httpapi.Given(b.UnsetPrefix); prefix != "" {
		s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
		if err != nil {
			return wire.Nothing{}, err
		}
		for name, value := range s.Env {
			if _, kept := b.Set[name]; !kept && strings.HasPrefix(value, prefix) {
				p.EnvUnset = append(p.EnvUnset, name)
			}
		}
	}
	_, err := a.Sandboxes.Update(ctx, c.Caller, in.Ref, p)
	return wire.Nothing{}, err
}
