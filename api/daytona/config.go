// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
)

// config is what clients read before all else: older ones to find the toolbox, and newer ones to find nothing that
// collects their figures.
func (a *API) config(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (wire.Config, error) {
	base := guard.BaseURL(c.R)
	all, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return wire.Config{}, err
	}
	image := ""
	for _, i := range all {
		if i.Default {
			image = i.Name
		}
	}
	return wire.Config{
		Version: a.version, ProxyTemplateURL: base + "/preview", ProxyToolboxURL: toolboxURL(c.R), DefaultSnapshot: image,
		DashboardURL: base + "/console/", MaxAutoArchiveInterval: int(daytonaterms.MaxMinutes), Environment: "sandpit",
	}, nil
}
