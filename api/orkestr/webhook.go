// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/webhooks"
)

type webhookShape struct {
	ID       string     `json:"id"`
	URL      string     `json:"url"`
	Types    []string   `json:"event_types"` // null: all
	Active   bool       `json:"active"`
	Failures int        `json:"consecutive_failures"`
	Last     *time.Time `json:"last_delivery_at"`
	Error    *string    `json:"last_error"`
	Created  time.Time  `json:"created_at"`
	Secret   *string    `json:"secret,omitempty"` // in the answer that made it alone
}

// hooks returns the server's webhooks.
func (a *API) hooks() (service.Webhooks, error) {
	if a.Webhooks == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no webhooks")
	}
	return a.Webhooks, nil
}

// hookOf is what is told of a webhook. The last delivery is the newest that was taken.
func hookOf(ctx context.Context, c *httpapi.Call, s service.Webhooks, w *webhooks.Webhook) (webhookShape, error) {
	out := webhookShape{ID: w.ID, URL: w.URL, Types: w.Types, Active: w.DisabledAt.IsZero(), Failures: w.Failures, Created: w.CreatedAt.UTC()}
	if w.Detail != "" {
		out.Error = &w.Detail
	}
	done, err := s.Deliveries(ctx, c.Caller, w.ID, webhooks.Page{State: webhooks.Delivered, Limit: 1})
	if err == nil && len(done) > 0 {
		out.Last = new(done[0].DoneAt.UTC())
	}
	return out, err
}

type createWebhook struct {
	Body struct {
		URL   string    `json:"url"`
		Types *[]string `json:"event_types"`
	}
}

func (a *API) createWebhook(ctx context.Context, c *httpapi.Call, in *createWebhook) (webhookShape, error) {
	s, err := a.hooks()
	if err != nil {
		return webhookShape{}, err
	}
	if t := in.Body.Types; t != nil && len(*t) == 0 {
		return webhookShape{}, fault.InvalidField("event_types", "is empty").WithRemedy("leave it out for every event, or give some of %s", strings.Join(webhookTypes(), ", "))
	}
	w, secret, err := s.Create(ctx, c.Caller, webhooks.Change{URL: &in.Body.URL, Types: in.Body.Types, Format: new(WebhookFormat)})
	if err != nil {
		var sp httpapi.Spellings
		sp.Wrote("types", "event_types")
		return webhookShape{}, sp.Rename(err)
	}
	out, err := hookOf(ctx, c, s, w)
	out.Secret = &secret
	return out, err
}

type webhookList struct {
	Webhooks []webhookShape `json:"webhooks"`
}

// listWebhooks lists those of Orkestr's format: others are sent what the SDK does not read.
func (a *API) listWebhooks(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (webhookList, error) {
	out := webhookList{Webhooks: []webhookShape{}}
	s, err := a.hooks()
	if err != nil {
		return out, err
	}
	all, err := s.List(ctx, c.Caller)
	if err != nil {
		return out, err
	}
	for _, w := range all {
		if w.Format != WebhookFormat {
			continue
		}
		one, err := hookOf(ctx, c, s, w)
		if err != nil {
			return out, err
		}
		out.Webhooks = append(out.Webhooks, one)
	}
	return out, nil
}

type byWebhook struct {
	Webhook string `path:"webhook"`
}

// hook finds a webhook of Orkestr's format.
func (a *API) hook(ctx context.Context, c *httpapi.Call, id string) (service.Webhooks, *webhooks.Webhook, error) {
	s, err := a.hooks()
	if err != nil {
		return nil, nil, err
	}
	w, err := s.Get(ctx, c.Caller, id)
	if err == nil && w.Format != WebhookFormat {
		err = fault.New(fault.NotFound, "there is no webhook %q of Orkestr's format", sandbox.Clip(id, 40)).WithRemedy("reach it by /v1/webhooks")
	}
	return s, w, err
}

func (a *API) getWebhook(ctx context.Context, c *httpapi.Call, in *byWebhook) (webhookShape, error) {
	s, w, err := a.hook(ctx, c, in.Webhook)
	if err != nil {
		return webhookShape{}, err
	}
	return hookOf(ctx, c, s, w)
}

// webhookSecret refuses to tell a secret: it was told when it was made.
func (a *API) webhookSecret(ctx context.Context, c *httpapi.Call, in *byWebhook) (httpapi.None, error) {
	_, w, err := a.hook(ctx, c, in.Webhook)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, coded("secret_shown_once", http.StatusGone, fault.New(fault.Conflict, "the secret of the webhook %s was told when it was made, and is not told again", w.ID).
		WithRemedy("have another made by POST /v1/webhooks/%s/rotate, or delete the webhook and create one", w.ID))
}

// enableWebhook switches a webhook on again, and may be asked for twice.
func (a *API) enableWebhook(ctx context.Context, c *httpapi.Call, in *byWebhook) (webhookShape, error) {
	s, w, err := a.hook(ctx, c, in.Webhook)
	if err != nil {
		return webhookShape{}, err
	}
	if w, err = s.Update(ctx, c.Caller, w.ID, webhooks.Change{Enabled: new(true)}); err != nil {
		return webhookShape{}, err
	}
	return hookOf(ctx, c, s, w)
}

func (a *API) deleteWebhook(ctx context.Context, c *httpapi.Call, in *byWebhook) (httpapi.None, error) {
	s, w, err := a.hook(ctx, c, in.Webhook)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, s.Delete(ctx, c.Caller, w.ID)
}
