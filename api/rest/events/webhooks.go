// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/webhooks"
)

func (a *API) webhookOperations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("createWebhook", "POST /webhooks", "Have events of the project sent to a URL. The answer has the secret that signs them, once. Needs the scope admin.", http.StatusCreated, a.createWebhook).
			Example(v1.CreateWebhook{URL: "https://hooks.example.org/sandpit", Types: []string{"sandbox.stopped", "snapshot"}}).
			Extend(idempotency.Keyless("its answer has a secret, which is not kept for a second one; the second makes another webhook")),
		httpapi.Op("listWebhooks", "GET /webhooks", "List the project's webhooks, without their secrets. Needs the scope admin.", http.StatusOK, a.listWebhooks),
		httpapi.Op("getWebhook", "GET /webhooks/{id}", "Get a webhook, without its secret. Needs the scope admin.", http.StatusOK, a.getWebhook),
		httpapi.Op("updateWebhook", "PATCH /webhooks/{id}", "Change a webhook, or switch it on or off. Needs the scope admin.", http.StatusOK, a.updateWebhook).
			Example(v1.UpdateWebhook{Enabled: new(true)}),
		httpapi.Op("rotateWebhook", "POST /webhooks/{id}/rotate", "Give a webhook another secret, which the answer has. Deliveries are signed with both for a while. Needs the scope admin.", http.StatusOK, a.rotateWebhook).
			Example(v1.RotateWebhook{GraceSeconds: new(int64(3600))}).
			Extend(idempotency.Keyless("the second makes another secret, and the one before it stays valid for the grace")),
		httpapi.Op("deleteWebhook", "DELETE /webhooks/{id}", "Delete a webhook with its deliveries. Needs the scope admin.", http.StatusNoContent, a.deleteWebhook),
		httpapi.Op("listWebhookDeliveries", "GET /webhooks/{id}/deliveries", "List deliveries of a webhook, newest first: those that are pending, and the last 500 that are over. Needs the scope admin.", http.StatusOK, a.listDeliveries),
		httpapi.Op("repeatWebhookDelivery", "POST /webhooks/{id}/deliveries/{delivery}/repeat", "Send what a delivery sent once more, as a delivery of its own. Needs the scope admin.", http.StatusAccepted, a.repeatDelivery).
			Extend(idempotency.Keyless("each sends it once more")),
	}
}

func (a *API) webhooks() (service.Webhooks, error) {
	if a.Webhooks == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no webhooks")
	}
	return a.Webhooks, nil
}

type createWebhook struct{ Body v1.CreateWebhook }

func (a *API) createWebhook(ctx context.Context, c *httpapi.Call, in *createWebhook) (v1.Webhook, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.Webhook{}, err
	}
	ch := webhooks.Change{URL: &in.Body.URL, Description: in.Body.Description, Format: in.Body.Format}
	if in.Body.URL == "" {
		ch.URL = nil
	}
	if in.Body.Types != nil {
		ch.Types = &in.Body.Types
	}
	w, secret, err := s.Create(ctx, c.Caller, ch)
	if err != nil {
		return v1.Webhook{}, err
	}
	c.W.Header().Set("Location", "/v1/webhooks/"+w.ID)
	out := webhookOf(w)
	out.Secret = secret
	return out, nil
}

func (a *API) listWebhooks(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.WebhookList, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.WebhookList{}, err
	}
	all, err := s.List(ctx, c.Caller)
	if err != nil {
		return v1.WebhookList{}, err
	}
	out := v1.WebhookList{Items: make([]v1.Webhook, 0, len(all))}
	for _, w := range all {
		out.Items = append(out.Items, webhookOf(w))
	}
	return out, nil
}

type byWebhook struct {
	ID string `path:"id" doc:"the webhook's id"`
}

func (a *API) getWebhook(ctx context.Context, c *httpapi.Call, in *byWebhook) (v1.Webhook, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.Webhook{}, err
	}
	w, err := s.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return v1.Webhook{}, err
	}
	return webhookOf(w), nil
}

type updateWebhook struct {
	byWebhook
	Body v1.UpdateWebhook
}

func (a *API) updateWebhook(ctx context.Context, c *httpapi.Call, in *updateWebhook) (v1.Webhook, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.Webhook{}, err
	}
	ch := webhooks.Change{URL: in.Body.URL, Description: in.Body.Description, Enabled: in.Body.Enabled}
	if in.Body.Types != nil {
		ch.Types = &in.Body.Types
	}
	w, err := s.Update(ctx, c.Caller, in.ID, ch)
	if err != nil {
		return v1.Webhook{}, err
	}
	return webhookOf(w), nil
}

type rotateWebhook struct {
	byWebhook
	Body v1.RotateWebhook
}

func (a *API) rotateWebhook(ctx context.Context, c *httpapi.Call, in *rotateWebhook) (v1.Webhook, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.Webhook{}, err
	}
	grace := webhooks.DefaultGrace
	if g := in.Body.GraceSeconds; g != nil {
		if *g < 0 || *g > int64(webhooks.MaxGrace/time.Second) {
			return v1.Webhook{}, fault.InvalidField("grace_seconds", "%d is outside 0 to %d", *g, int64(webhooks.MaxGrace/time.Second))
		}
		grace = time.Duration(*g) * time.Second
	}
	w, secret, err := s.Rotate(ctx, c.Caller, in.ID, grace)
	if err != nil {
		return v1.Webhook{}, err
	}
	out := webhookOf(w)
	out.Secret = secret
	return out, nil
}

func (a *API) deleteWebhook(ctx context.Context, c *httpapi.Call, in *byWebhook) (httpapi.None, error) {
	s, err := a.webhooks()
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, s.Delete(ctx, c.Caller, in.ID)
}

type listDeliveries struct {
	byWebhook
	Status *string `query:"status" doc:"only those that are pending, delivered or failed"`
	Limit  *int    `query:"limit" doc:"most rows of a page, 1 to 200; default 50"`
	Cursor *string `query:"cursor" doc:"next_cursor of the page before"`
}

func (a *API) listDeliveries(ctx context.Context, c *httpapi.Call, in *listDeliveries) (v1.WebhookDeliveryPage, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.WebhookDeliveryPage{}, err
	}
	p := webhooks.Page{State: httpapi.Given(in.Status), Limit: 50}
	if in.Limit != nil {
		p.Limit = *in.Limit
	}
	if in.Cursor != nil {
		if p.Before, err = strconv.ParseInt(*in.Cursor, 10, 64); err != nil || p.Before < 1 {
			return v1.WebhookDeliveryPage{}, fault.InvalidField("cursor", "%q is no cursor of this list", sandbox.Clip(*in.Cursor, 40)).WithRemedy("send next_cursor of the page before, or leave it out")
		}
	}
	all, err := s.Deliveries(ctx, c.Caller, in.ID, p)
	if err != nil {
		return v1.WebhookDeliveryPage{}, err
	}
	out := v1.WebhookDeliveryPage{Items: make([]v1.WebhookDelivery, 0, len(all))}
	for _, d := range all {
		out.Items = append(out.Items, deliveryOf(d))
	}
	if len(all) == p.Limit {
		out.NextCursor = new(strconv.FormatInt(all[len(all)-1].Number, 10))
	}
	return out, nil
}

type byDelivery struct {
	byWebhook
	Delivery string `path:"delivery" doc:"the delivery's id"`
}

func (a *API) repeatDelivery(ctx context.Context, c *httpapi.Call, in *byDelivery) (v1.WebhookDelivery, error) {
	s, err := a.webhooks()
	if err != nil {
		return v1.WebhookDelivery{}, err
	}
	d, err := s.Repeat(ctx, c.Caller, in.ID, in.Delivery)
	if err != nil {
		return v1.WebhookDelivery{}, err
	}
	return deliveryOf(d), nil
}

func webhookOf(w *webhooks.Webhook) v1.Webhook {
	out := v1.Webhook{
		ID: w.ID, Project: w.Project, URL: w.URL, Types: append([]string{}, w.Types...), Description: w.Description, Format: cmp.Or(w.Format, webhooks.Own), Status: "enabled",
		DisabledAt: shape.TimeOrNull(w.DisabledAt), DisabledBy: w.DisabledBy, Failures: w.Failures, Detail: w.Detail,
		CreatedAt: w.CreatedAt.UTC(), CreatedBy: w.CreatedBy, UpdatedAt: w.UpdatedAt.UTC(),
	}
	if !w.DisabledAt.IsZero() {
		out.Status = "disabled"
	}
	if len(w.OldSecret) > 0 {
		out.OldSecret = shape.TimeOrNull(w.OldUntil)
	}
	return out
}

func deliveryOf(d *webhooks.Delivery) v1.WebhookDelivery {
	return v1.WebhookDelivery{
		ID: d.ID, WebhookID: d.Webhook, EventID: d.EventID, Type: d.Type, Repeats: shape.TextOrNull(d.Repeats), Status: d.State, Attempts: d.Attempts,
		NextAt: shape.TimeOrNull(d.NextAt), CreatedAt: d.CreatedAt.UTC(), DoneAt: shape.TimeOrNull(d.DoneAt), ResponseCode: shape.NumberOrNull(d.Status),
		DurationMS: d.Duration.Milliseconds(), FailureReason: d.Detail,
	}
}
