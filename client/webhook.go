// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// WebhookSignature is the header of a delivery that [VerifyWebhook] reads.
const WebhookSignature = "Sandpit-Signature"

// CreateWebhook has events of the project sent to a URL. The answer has the secret that signs them, once.
func (c *Client) CreateWebhook(ctx context.Context, r v1.CreateWebhook) (*v1.Webhook, error) {
	return c.webhook(ctx, request{method: "POST", path: "/webhooks", body: r})
}

// Webhooks returns the project's webhooks, oldest first.
func (c *Client) Webhooks(ctx context.Context) ([]v1.Webhook, error) {
	var l v1.WebhookList
	_, err := c.call(ctx, request{method: "GET", path: "/webhooks"}, &l)
	return l.Items, err
}

// Webhook returns a webhook.
func (c *Client) Webhook(ctx context.Context, id string) (*v1.Webhook, error) {
	return c.webhook(ctx, request{method: "GET", path: "/webhooks/" + seg(id)})
}

// UpdateWebhook changes a webhook, or switches it on or off.
func (c *Client) UpdateWebhook(ctx context.Context, id string, r v1.UpdateWebhook) (*v1.Webhook, error) {
	return c.webhook(ctx, request{method: "PATCH", path: "/webhooks/" + seg(id), body: r})
}

// RotateWebhook replaces the secret of a webhook, and returns the webhook with the new one.
func (c *Client) RotateWebhook(ctx context.Context, id string, r v1.RotateWebhook) (*v1.Webhook, error) {
	return c.webhook(ctx, request{method: "POST", path: "/webhooks/" + seg(id) + "/rotate", body: r})
}

// DeleteWebhook deletes a webhook with its deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/webhooks/" + seg(id)}, nil)
	return err
}

func (c *Client) webhook(ctx context.Context, r request) (*v1.Webhook, error) {
	w := new(v1.Webhook)
	if _, err := c.call(ctx, r, w); err != nil {
		return nil, err
	}
	return w, nil
}

// DeliveryQuery selects deliveries of a webhook. The zero value is the newest.
type DeliveryQuery struct {
	Status string // pending, delivered or failed
	Limit  int    // rows of a page; 0: the server's default
	Cursor string
}

// WebhookDeliveries returns a page of deliveries of a webhook, newest first.
func (c *Client) WebhookDeliveries(ctx context.Context, id string, q DeliveryQuery) (*v1.WebhookDeliveryPage, error) {
	v := make(url.Values)
	set(v, "status", q.Status)
	set(v, "cursor", q.Cursor)
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	p := new(v1.WebhookDeliveryPage)
	_, err := c.call(ctx, request{method: "GET", path: "/webhooks/" + seg(id) + "/deliveries", query: v}, p)
	return p, err
}

// RepeatWebhookDelivery sends what a delivery sent once more.
func (c *Client) RepeatWebhookDelivery(ctx context.Context, id, delivery string) (*v1.WebhookDelivery, error) {
	d := new(v1.WebhookDelivery)
	if _, err := c.call(ctx, request{method: "POST", path: "/webhooks/" + seg(id) + "/deliveries/" + seg(delivery) + "/repeat"}, d); err != nil {
		return nil, err
	}
	return d, nil
}

// VerifyWebhook checks that a delivery was signed with the secret, at most tolerance ago: header is the value of
// [WebhookSignature], body the request's body as it came. A delivery may come twice; its event's id is the same then.
func VerifyWebhook(header string, body []byte, secret string, tolerance time.Duration) error {
	bad := func(format string, args ...any) error { return fault.New(fault.Unauthenticated, format, args...) }
	t, rest, _ := strings.Cut(header, ",")
	t, ok := strings.CutPrefix(t, "t=")
	at, err := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil {
		return bad("the signature has no time")
	}
	if d := time.Since(time.Unix(at, 0)); d > tolerance || d < -tolerance {
		return bad("the signature is of %s, more than %v away", time.Unix(at, 0).UTC().Format(time.RFC3339), tolerance)
	}
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(t + "."))
	m.Write(body)
	want := m.Sum(nil)
	for part := range strings.SplitSeq(rest, ",") {
		if digits, ok := strings.CutPrefix(part, "v1="); ok {
			if got, err := hex.DecodeString(digits); err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return bad("the delivery is not signed with this secret")
}
