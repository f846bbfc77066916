// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/languages"
)

// config answers with what older clients find the toolbox by, and newer ones a service of metrics, of which there is none.
func (a *API) config(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (wire.Config, error) {
	base := guard.BaseURL(c.R)
	all, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return wire.Config{}, err
	}
	image := ""
	for _, i := range all {
		if i.Default && image == "" || i.Name == languages.Image && i.Allowed && i.Image.Digest != "" {
			image = i.Name
		}
	}
	return wire.Config{
		Version: a.version, ProxyTemplateURL: base + "/preview", ProxyToolboxURL: toolboxURL(c.R), DefaultSnapshot: image,
		DashboardURL: base + "/console/", MaxAutoArchiveInterval: int(daytonaterms.MaxMinutes), Environment: "sandpit",
	}, nil
}

// usualImage returns the image of a sandbox whose request names none: the one with language servers, where it is built and
// allowed; else "", by which the engine chooses that of a default template, or the server's default.
func (a *API) usualImage(ctx context.Context, c access.Caller) string {
	has, err := a.Images.HasImage(ctx, c, languages.Image)
	if !has || err != nil {
		return "" // it may create and not look
	}
	if a.Templates != nil {
		if has, err = a.Templates.HasDefault(ctx, c); has || err != nil {
			return ""
		}
	}
	return languages.Image
}
