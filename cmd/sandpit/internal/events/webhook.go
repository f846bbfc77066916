// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// NewWebhook returns the group of commands about webhooks.
func NewWebhook(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "webhook",
		Short: "Have events of the project sent to URLs",
		Long: `Have events of the project sent to URLs, signed, and tried again for 24 hours where one does not answer. See
docs/events.md for how a signature is checked.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	c.AddCommand(a.create(), a.ls(), a.update(), a.enable("enable", "Switch webhooks on: what happens from now on is sent, and what was pending", true),
		a.enable("disable", "Switch webhooks off: nothing is sent", false), a.rotate(), a.rm(), a.deliveries(), a.repeat())
	return c
}

// shown prints a webhook, with its secret where there is one.
func (a App) shown(as output.Format, w *v1.Webhook) error {
	if err := output.One(a.Out, as, w, w.ID, w.ID); err != nil || w.Secret == "" || as.IsData() || as == output.AsName {
		return err
	}
	fmt.Fprintln(a.Err, "the second line is the secret that signs deliveries; it is not shown again")
	_, err := fmt.Fprintln(a.Out, w.Secret)
	return err
}

func (a App) create() *cobra.Command {
	c := &cobra.Command{
		Use:     "create [flags] URL",
		Short:   "Send events to a URL; prints the webhook's id and the secret that signs them",
		Example: "  sandpit webhook create https://hooks.example.org/sandpit --type sandbox.stopped,snapshot",
		Args:    a.Takes(1, 1),
	}
	types := c.Flags().StringSlice("type", nil, "only events of this type (sandbox.started, or snapshot for all of snapshots); may be given again")
	text := c.Flags().String("description", "", "what it is for")
	format := c.Flags().String("format", "", "of what is sent: sandpit (the default), or orkestr, as Orkestr's SDK reads it")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r := v1.CreateWebhook{URL: args[0], Types: *types}
		if *text != "" {
			r.Description = text
		}
		if *format != "" {
			r.Format = format
		}
		w, err := cl.CreateWebhook(c.Context(), r)
		if err != nil {
			return err
		}
		return a.shown(*out, w)
	}
	return c
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List the project's webhooks", Args: a.Takes(0, 0)}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Webhooks(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Out, how, all, func(w v1.Webhook) string { return w.ID }, output.Columns[v1.Webhook]{
			Head: []string{"ID", "STATUS", "FAILURES", "URL", "TYPES"},
			Row: func(w v1.Webhook, _ time.Time) []string {
				return []string{w.ID, w.Status, strconv.Itoa(w.Failures), w.URL, orAll(w.Types)}
			},
			WideHead: []string{"FORMAT", "DESCRIPTION", "LAST FAILURE"},
			WideRow:  func(w v1.Webhook, _ time.Time) []string { return []string{w.Format, w.Description, w.Detail} },
		})
	}
	return c
}

func orAll(types []string) string {
	if len(types) == 0 {
		return "all"
	}
	return strings.Join(types, ",")
}

func (a App) update() *cobra.Command {
	c := &cobra.Command{Use: "update [flags] WEBHOOK", Short: "Change a webhook", Args: a.Takes(1, 1)}
	address := c.Flags().String("url", "", "another URL")
	types := c.Flags().StringSlice("type", nil, "only events of this type; may be given again; empty: all")
	text := c.Flags().String("description", "", "what it is for")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var r v1.UpdateWebhook
		if c.Flags().Changed("url") {
			r.URL = address
		}
		if c.Flags().Changed("type") {
			r.Types = append([]string{}, *types...)
		}
		if c.Flags().Changed("description") {
			r.Description = text
		}
		if r.URL == nil && r.Types == nil && r.Description == nil {
			return exit.Misuse(c, "nothing is to be changed; give --url, --type or --description")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		w, err := cl.UpdateWebhook(c.Context(), args[0], r)
		if err != nil {
			return err
		}
		return a.shown(*out, w)
	}
	return c
}

func (a App) enable(use, short string, on bool) *cobra.Command {
	c := &cobra.Command{Use: use + " WEBHOOK...", Short: short, Args: a.Takes(1, -1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(args, func(id string) error {
			_, err := cl.UpdateWebhook(c.Context(), id, v1.UpdateWebhook{Enabled: &on})
			return err
		})
	}
	return c
}

func (a App) rotate() *cobra.Command {
	c := &cobra.Command{Use: "rotate [flags] WEBHOOK", Short: "Give a webhook another secret, and print it", Args: a.Takes(1, 1)}
	grace := c.Flags().Duration("grace", 24*time.Hour, "deliveries are signed with both secrets for so long; 0: with the new one alone")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		w, err := cl.RotateWebhook(c.Context(), args[0], v1.RotateWebhook{GraceSeconds: new(int64(*grace / time.Second))})
		if err != nil {
			return err
		}
		return a.shown(*out, w)
	}
	return c
}

func (a App) rm() *cobra.Command {
	c := &cobra.Command{Use: "rm WEBHOOK...", Short: "Delete webhooks with their deliveries", Args: a.Takes(1, -1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(args, func(id string) error { return cl.DeleteWebhook(c.Context(), id) })
	}
	return c
}

func (a App) deliveries() *cobra.Command {
	c := &cobra.Command{Use: "deliveries [flags] WEBHOOK", Short: "List what was sent to a webhook, newest first", Args: a.Takes(1, 1)}
	status := c.Flags().String("status", "", "only those that are pending, delivered or failed")
	most := c.Flags().IntP("lines", "n", 50, "how many, counted from the newest, at most 200")
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		p, err := cl.WebhookDeliveries(c.Context(), args[0], client.DeliveryQuery{Status: *status, Limit: *most})
		if err != nil {
			return err
		}
		return output.List(a.Out, how, p.Items, func(d v1.WebhookDelivery) string { return d.ID }, output.Columns[v1.WebhookDelivery]{
			Head: []string{"ID", "WHEN", "TYPE", "STATUS", "ATTEMPTS", "ANSWER"},
			Row: func(d v1.WebhookDelivery, now time.Time) []string {
				answer := d.FailureReason
				if d.ResponseCode != nil && answer == "" {
					answer = strconv.Itoa(*d.ResponseCode)
				}
				return []string{d.ID, output.Ago(now, &d.CreatedAt), d.Type, d.Status, strconv.Itoa(d.Attempts), answer}
			},
			WideHead: []string{"EVENT", "REPEATS"},
			WideRow: func(d v1.WebhookDelivery, _ time.Time) []string {
				repeats := ""
				if d.Repeats != nil {
					repeats = *d.Repeats
				}
				return []string{d.EventID, repeats}
			},
		})
	}
	return c
}

func (a App) repeat() *cobra.Command {
	c := &cobra.Command{Use: "repeat WEBHOOK DELIVERY", Short: "Send what a delivery sent once more", Args: a.Takes(2, 2)}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		d, err := cl.RepeatWebhookDelivery(c.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Out, d.ID)
		return err
	}
	return c
}
