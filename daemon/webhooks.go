// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"net/netip"

	"sandpit.dev/api/orkestr"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/engine/events"
	"sandpit.dev/internal/seal"
	"sandpit.dev/store"
	"sandpit.dev/webhooks"
)

// WebhooksConfig is what webhooks may reach.
type WebhooksConfig struct {
	// Allow are addresses and ranges beyond the public internet that webhooks may reach, also without TLS.
	Allow []string `yaml:"allow"`
}

func (c WebhooksConfig) open(s store.Store, l *events.Log, ring *seal.Ring, block []netip.Prefix, version string, log *slog.Logger) (*webhooks.Service, error) {
	allow, err := ranges("webhooks.allow", c.Allow)
	if err != nil {
		return nil, err
	}
	return webhooks.New(s, l, webhooks.Options{Ring: ring, Body: shape.Event, Formats: map[string]webhooks.Format{orkestr.WebhookFormat: orkestr.Deliveries()}, Allow: allow, Block: block, Version: version, Logger: log}), nil
}
