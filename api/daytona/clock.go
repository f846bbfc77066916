// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"strconv"
	"time"

	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// clockOperations set a clock of a sandbox to the minutes in their paths.
func (a *API) clockOperations() []httpapi.Operation {
	set := func(id, name, field string, least float64, change func(time.Duration) update.Patch) httpapi.Operation {
		return sandboxOp(a, id, "POST /sandbox/{id}/"+name+"/{value}", func(ctx context.Context, c *httpapi.Call, in *withValue) (*sandbox.Sandbox, error) {
			m, err := strconv.ParseFloat(in.Value, 64)
			if err != nil || !(m >= least && m <= daytonaterms.MaxMinutes) {
				return nil, fault.InvalidField(field, "%q is not a number of minutes from %g to %g", sandbox.Clip(in.Value, 40), least, daytonaterms.MaxMinutes)
			}
			return a.Sandboxes.Update(ctx, c.Caller, in.Ref, change(daytonaterms.Minutes(m)))
		})
	}
	return []httpapi.Operation{
		// A sandbox has one clock of idleness, which stops or pauses it.
		set("setAutostop", "autostop", "interval", 0, func(d time.Duration) update.Patch {
			return update.Patch{IdleTimeout: &d, OnIdle: new(sandbox.IdleStop)}
		}),
		set("setAutopause", "autopause", "interval", 0, func(d time.Duration) update.Patch {
			return update.Patch{IdleTimeout: &d, OnIdle: new(sandbox.IdlePause), AutoResume: new(true)}
		}),
		set("setAutoarchive", "autoarchive", "interval", 0, func(d time.Duration) update.Patch { return update.Patch{ArchiveAfter: &d} }),
		set("setAutodelete", "autodelete", "interval", -daytonaterms.MaxMinutes, func(d time.Duration) update.Patch {
			return update.Patch{AutoDelete: new(d == 0), Retention: new(max(d, 0))}
		}),
		set("setTTL", "ttl", "ttlMinutes", 0, func(d time.Duration) update.Patch { return update.Patch{TTL: &d} }),
	}
}
