// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"fmt"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// webhooks is store.Webhooks within one transaction.
type webhooks struct{ tx *tx }

const (
	webhookColumns  = "id, project, url, types, description, secret, old_secret, old_until, position, failures, disabled_at, disabled_by, detail, created_at, created_by, updated_at, format"
	deliveryColumns = "number, id, webhook, event_id, type, repeats, state, attempts, next_at, created_at, done_at, status, duration, detail"
)

const (
	insertWebhook = "INSERT INTO webhooks (" + webhookColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING"
	getWebhook    = "SELECT " + webhookColumns + " FROM webhooks WHERE id = $1"
	listWebhooks  = "SELECT " + webhookColumns + " FROM webhooks WHERE project = $1 ORDER BY created_at, id"
	allWebhooks   = "SELECT " + webhookColumns + " FROM webhooks ORDER BY created_at, id"
	updateWebhook = "UPDATE webhooks SET url = $1, types = $2, description = $3, secret = $4, old_secret = $5, old_until = $6, position = $7," +
		" failures = $8, disabled_at = $9, disabled_by = $10, detail = $11, updated_at = $12 WHERE id = $13"
	deleteWebhook    = "DELETE FROM webhooks WHERE id = $1"
	deleteDeliveries = "DELETE FROM webhook_deliveries WHERE webhook = $1"
	addDelivery      = "INSERT INTO webhook_deliveries (id, webhook, event_id, type, body, repeats, state, attempts, next_at, created_at, done_at, status, duration, detail)" +
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
	getDelivery    = "SELECT body, " + deliveryColumns + " FROM webhook_deliveries WHERE id = $1 AND webhook = $2"
	listDeliveries = "SELECT " + deliveryColumns + " FROM webhook_deliveries WHERE webhook = $1 AND number < $2 ORDER BY number DESC LIMIT $3"
	ofState        = "SELECT " + deliveryColumns + " FROM webhook_deliveries WHERE webhook = $1 AND number < $2 AND state = $3 ORDER BY number DESC LIMIT $4"
	dueDelivery    = "SELECT body, " + deliveryColumns + " FROM webhook_deliveries WHERE webhook = $1 AND state = 'pending' ORDER BY number LIMIT 1"
	countPending   = "SELECT COUNT(*) FROM webhook_deliveries WHERE webhook = $1 AND state = 'pending'"
	finishDelivery = "UPDATE webhook_deliveries SET state = $1, attempts = $2, next_at = $3, done_at = $4, status = $5, duration = $6, detail = $7 WHERE id = $8 AND webhook = $9"
	prunePast      = "DELETE FROM webhook_deliveries WHERE number IN (SELECT number FROM webhook_deliveries WHERE webhook = $1 AND state <> 'pending' ORDER BY number DESC LIMIT $2 OFFSET $3)"
)

var _ store.Webhooks = webhooks{}

func typesText(types []string) string {
	if types == nil {
		types = []string{}
	}
	b, err := json.Marshal(types)
	if err != nil {
		panic("sqlstore: types that are no JSON: " + err.Error()) // they are texts
	}
	return string(b)
}

func (q webhooks) Insert(w *store.Webhook) error {
	n, err := q.tx.exec(insertWebhook, w.ID, w.Project, w.URL, typesText(w.Types), w.Description, w.Secret, w.OldSecret, micros(w.OldUntil), w.Position,
		int64(w.Failures), micros(w.DisabledAt), w.DisabledBy, w.Detail, micros(w.CreatedAt), w.CreatedBy, micros(w.UpdatedAt), w.Format)
	if err == nil && n == 0 {
		return fault.New(fault.Exists, "there is a webhook %s already", w.ID)
	}
	return err
}

func (q webhooks) read(text string, args ...any) (out []*store.Webhook, err error) {
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		w := new(store.Webhook)
		var types string
		var until, failures, disabled, made, updated int64
		if err := scan(&w.ID, &w.Project, &w.URL, &types, &w.Description, &w.Secret, &w.OldSecret, &until, &w.Position, &failures, &disabled, &w.DisabledBy,
			&w.Detail, &made, &w.CreatedBy, &updated, &w.Format); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(types), &w.Types); err != nil {
			return fmt.Errorf("the types %q: %w", sandbox.Clip(types, 100), err)
		}
		if len(w.Types) == 0 {
			w.Types = nil
		}
		w.OldUntil, w.DisabledAt, w.CreatedAt, w.UpdatedAt, w.Failures = fromMicros(until), fromMicros(disabled), fromMicros(made), fromMicros(updated), int(failures)
		out = append(out, w)
		return nil
	})
	return out, err
}

func (q webhooks) Get(id string) (*store.Webhook, error) {
	all, err := q.read(getWebhook, id)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noWebhook(id)
	}
	return all[0], nil
}

func noWebhook(id string) error {
	return fault.New(fault.NotFound, "there is no webhook %q", sandbox.Clip(id, 40))
}

func (q webhooks) List(project string) ([]*store.Webhook, error) {
	if project == "" {
		return q.read(allWebhooks)
	}
	return q.read(listWebhooks, project)
}

func (q webhooks) Update(w *store.Webhook) error {
	n, err := q.tx.exec(updateWebhook, w.URL, typesText(w.Types), w.Description, w.Secret, w.OldSecret, micros(w.OldUntil), w.Position,
		int64(w.Failures), micros(w.DisabledAt), w.DisabledBy, w.Detail, micros(w.UpdatedAt), w.ID)
	if err == nil && n == 0 {
		return noWebhook(w.ID)
	}
	return err
}

func (q webhooks) Delete(id string) error {
	if _, err := q.tx.exec(deleteDeliveries, id); err != nil {
		return err
	}
	n, err := q.tx.exec(deleteWebhook, id)
	if err == nil && n == 0 {
		return noWebhook(id)
	}
	return err
}

func (q webhooks) Add(d *store.Delivery) error {
	number, err := q.tx.number(addDelivery, d.ID, d.Webhook, d.EventID, d.Type, d.Body, d.Repeats, d.State, int64(d.Attempts), micros(d.NextAt), micros(d.CreatedAt),
		micros(d.DoneAt), int64(d.Status), int64(d.Duration), d.Detail)
	if err == nil {
		d.Number = number
	}
	return err
}

func (q webhooks) deliveries(body bool, text string, args ...any) (out []*store.Delivery, err error) {
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		d := new(store.Delivery)
		var attempts, next, made, done, status int64
		dest := []any{&d.Number, &d.ID, &d.Webhook, &d.EventID, &d.Type, &d.Repeats, &d.State, &attempts, &next, &made, &done, &status, (*int64)(&d.Duration), &d.Detail}
		if body {
			dest = append([]any{&d.Body}, dest...)
		}
		if err := scan(dest...); err != nil {
			return err
		}
		d.NextAt, d.CreatedAt, d.DoneAt, d.Attempts, d.Status = fromMicros(next), fromMicros(made), fromMicros(done), int(attempts), int(status)
		out = append(out, d)
		return nil
	})
	return out, err
}

func (q webhooks) Delivery(webhook, id string) (*store.Delivery, error) {
	all, err := q.deliveries(true, getDelivery, id, webhook)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noDelivery(id)
	}
	return all[0], nil
}

func noDelivery(id string) error {
	return fault.New(fault.NotFound, "the webhook has no delivery %q", sandbox.Clip(id, 40))
}

func (q webhooks) Deliveries(webhook string, before int64, state string, limit int) ([]*store.Delivery, error) {
	if before <= 0 {
		before = 1<<63 - 1
	}
	if state == "" {
		return q.deliveries(false, listDeliveries, webhook, before, int64(limit))
	}
	return q.deliveries(false, ofState, webhook, before, state, int64(limit))
}

func (q webhooks) Due(webhook string) (*store.Delivery, error) {
	all, err := q.deliveries(true, dueDelivery, webhook)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

func (q webhooks) Pending(webhook string) (int, error) {
	var n int64
	_, err := q.tx.row(countPending, []any{webhook}, &n)
	return int(n), err
}

func (q webhooks) Finish(d *store.Delivery) error {
	n, err := q.tx.exec(finishDelivery, d.State, int64(d.Attempts), micros(d.NextAt), micros(d.DoneAt), int64(d.Status), int64(d.Duration), d.Detail, d.ID, d.Webhook)
	if err == nil && n == 0 {
		return noDelivery(d.ID)
	}
	return err
}

func (q webhooks) Prune(webhook string, keep, limit int) (int, error) {
	n, err := q.tx.exec(prunePast, webhook, int64(limit), int64(keep))
	return int(n), err
}
