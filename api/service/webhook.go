// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/webhooks"
)

// Webhooks keeps webhooks of projects.
type Webhooks interface {
	Create(ctx context.Context, c access.Caller, ch webhooks.Change) (w *webhooks.Webhook, secret string, err error)
	List(ctx context.Context, c access.Caller) ([]*webhooks.Webhook, error)
	Get(ctx context.Context, c access.Caller, id string) (*webhooks.Webhook, error)
	Update(ctx context.Context, c access.Caller, id string, ch webhooks.Change) (*webhooks.Webhook, error)
	// Rotate replaces the secret of a webhook; deliveries are signed by both during grace.
	Rotate(ctx context.Context, c access.Caller, id string, grace time.Duration) (w *webhooks.Webhook, secret string, err error)
	Delete(ctx context.Context, c access.Caller, id string) error
	Deliveries(ctx context.Context, c access.Caller, id string, p webhooks.Page) ([]*webhooks.Delivery, error)
	Repeat(ctx context.Context, c access.Caller, id, delivery string) (*webhooks.Delivery, error)
}
