// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "network",
		Short: "Say what sandboxes may reach, and see what they tried to",
		Long: `Say what sandboxes may reach, and see what they tried to. A sandbox reaches nothing but itself until it is
told what it may: names (restricted), or the public internet (open). Private addresses, the host and other
sandboxes are reached in no mode, unless the server's operator named them.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newNetworkShow(a), newNetworkSet(a), newNetworkLog(a), newNetworkPresets(a), newNetworkRequests(a),
		newNetworkAnswer(a, "grant", "Let a sandbox reach what was asked for", "%s may reach %s now", (*client.Client).GrantNetwork),
		newNetworkAnswer(a, "deny", "Forget what was asked for", "%s is not given %s", (*client.Client).DenyNetwork))
	return c
}

// Reach holds the flags that say what a sandbox may reach.
type Reach struct {
	f              *pflag.FlagSet
	allow          []string
	domains, cidrs []string
	deny           []string
	ports          []string
	headers        []string
	learn          bool
}

// ReachFlags adds the flags that say what a sandbox may reach to c.
func ReachFlags(a *app.App, c *cobra.Command) *Reach {
	r := &Reach{f: c.Flags()}
	r.f.StringSliceVar(&r.allow, "allow", nil, "preset that may be reached, such as python (see sandpit network presets), or name or address; may be given again")
	r.f.StringSliceVar(&r.domains, "allow-domain", nil, "name that may be reached, or *.NAME for all below it; may be given again")
	r.f.StringSliceVar(&r.cidrs, "allow-cidr", nil, "address, or range of addresses, that may be reached without a name; may be given again")
	r.f.StringSliceVar(&r.ports, "allow-port", nil, "port, or range such as 8000-8100, that both are bound to; may be given again")
	r.f.StringSliceVar(&r.deny, "deny", nil, "name, or *.NAME for all below it, or address or range, that is not reached in mode open, unless --allow-domain names it; may be given again")
	r.f.StringArrayVar(&r.headers, "host-header", nil, "HOST=NAME:VALUE: header, which is no secret, that the server sets in requests to a host, or *.NAME; may be given again")
	_ = c.RegisterFlagCompletionFunc("allow", a.CompletePresets)
	r.f.BoolVar(&r.learn, "learn", false, "let through what the lists would refuse, and note it")
	return r
}

// Policy is what the flags say beside a mode, which may be empty; nil: nothing.
func (r *Reach) Policy(mode string) any {
	lists := r.f.Changed("deny")
	for _, name := range []string{"allow", "allow-domain", "allow-cidr", "allow-port", "host-header", "learn"} {
		lists = lists || r.f.Changed(name)
	}
	switch {
	case mode == "" && !lists:
		return nil
	case mode == "" && len(r.deny) > 0:
		mode = "open"
	case mode == "":
		mode = "restricted"
	}
	p := v1.NetworkPolicy{Mode: mode, AllowDomains: r.domains, AllowCIDRs: r.cidrs, AllowPorts: r.ports, Learn: r.learn}
	for _, one := range r.deny {
		if isAddress(one) {
			p.DenyCIDRs = append(p.DenyCIDRs, one)
		} else {
			p.DenyDomains = append(p.DenyDomains, one)
		}
	}
	for _, one := range r.headers {
		host, header, _ := strings.Cut(one, "=")
		name, value, _ := strings.Cut(header, ":")
		if p.Headers == nil {
			p.Headers = make(map[string]map[string]string)
		}
		if p.Headers[host] == nil {
			p.Headers[host] = make(map[string]string)
		}
		p.Headers[host][name] = strings.TrimSpace(value)
	}
	for _, one := range r.allow {
		switch {
		case isAddress(one):
			p.AllowCIDRs = append(p.AllowCIDRs, one)
		case strings.Contains(one, "."):
			p.AllowDomains = append(p.AllowDomains, one)
		default:
			p.AllowPresets = append(p.AllowPresets, one)
		}
	}
	return p
}

// isAddress reports whether a text is an address, or a range of addresses.
func isAddress(text string) bool {
	_, ranged := netip.ParsePrefix(text)
	_, single := netip.ParseAddr(text)
	return ranged == nil || single == nil
}

func newNetworkSet(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "set [flags] SANDBOX off|restricted|open",
		Short: "Say what a sandbox may reach; it holds at once, for open connections too",
		Example: `  sandpit network set web restricted --allow-domain example.org,*.example.net
  sandpit network set web restricted --allow python,example.org
  sandpit network set web restricted --learn
  sandpit network set web open --deny '*.example.org,192.0.2.0/24'
  sandpit network set web off`,
		Args: app.Takes(2, 2),
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return []string{"off", "restricted", "open"}, cobra.ShellCompDirectiveNoFileComp
		}
		return a.CompleteAll(c, args, prefix)
	}
	r := ReachFlags(a, c)
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		change := v1.UpdateSandbox{Network: r.Policy(args[1])}
		return a.Each(c.Context(), args[:1], *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Update(ctx, ref, change)
		})
	}
	return c
}

func newNetworkShow(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "show [flags] SANDBOX",
		Short:             "Show what a sandbox may reach, and who says so",
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteAll,
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		s, err := cl.Get(c.Context(), args[0])
		if err != nil {
			return err
		}
		p := v1.NetworkPolicy{Mode: s.Network}
		if s.NetworkPolicy != nil {
			p = *s.NetworkPolicy
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, p)
		}
		return writePolicy(a.Stdout, p)
	}
	return c
}

// writePolicy prints a policy for people: what may be reached, one a line, and who says so.
func writePolicy(w io.Writer, p v1.NetworkPolicy) error {
	mode := p.Mode
	if p.Learn {
		mode += ", and learns: what the lists would refuse is let through and noted"
	}
	if _, err := fmt.Fprintln(w, "network "+output.Printable(mode)); err != nil {
		return err
	}
	var rows [][]string
	for _, d := range p.AllowDomains {
		says := "the policy"
		if i := slices.IndexFunc(p.PresetDomains, func(o v1.PresetDomain) bool { return o.Domain == d }); i >= 0 {
			says = "preset " + p.PresetDomains[i].Preset + " (" + p.PresetDomains[i].Source + ")"
		}
		rows = append(rows, []string{d, says})
	}
	for _, addresses := range p.AllowCIDRs {
		rows = append(rows, []string{addresses, "the policy"})
	}
	if len(rows) > 0 {
		if err := output.Table(w, []string{"MAY REACH", "BY"}, rows); err != nil {
			return err
		}
	}
	if denied := slices.Concat(p.DenyDomains, p.DenyCIDRs); len(denied) > 0 {
		if _, err := fmt.Fprintln(w, "not reached: "+output.Printable(strings.Join(denied, ", "))); err != nil {
			return err
		}
	}
	for _, host := range slices.Sorted(maps.Keys(p.Headers)) {
		for _, name := range slices.Sorted(maps.Keys(p.Headers[host])) {
			if _, err := fmt.Fprintln(w, output.Printable("requests to "+host+" have "+name+": "+p.Headers[host][name])); err != nil {
				return err
			}
		}
	}
	if len(p.AllowPorts) > 0 {
		_, err := fmt.Fprintln(w, "on ports "+output.Printable(strings.Join(p.AllowPorts, ", ")))
		return err
	}
	return nil
}

func newNetworkLog(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "log [flags] SANDBOX",
		Short: "Show what a sandbox tried to reach, and what was refused",
		Long: `Show what a sandbox tried to reach since it was started, or since the server was, the latest first. With
--propose the command is printed that would allow all of it that can be allowed.`,
		Example: `  sandpit network log web --refused
  sandpit network log web --propose`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteAll,
	}
	refused := c.Flags().Bool("refused", false, "only what was refused")
	propose := c.Flags().Bool("propose", false, "print the command that allows what was tried")
	how := output.ListFlags(c, "what was tried only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		log, err := cl.NetworkLog(c.Context(), args[0])
		switch {
		case err != nil:
			return err
		case *propose:
			_, err := fmt.Fprintln(a.Stdout, output.Printable(proposal(args[0], log.Proposal)))
			return err
		}
		if *refused {
			kept := log.Items[:0]
			for _, e := range log.Items {
				if !e.Allowed {
					kept = append(kept, e)
				}
			}
			log.Items = kept
		}
		return output.List(a.Stdout, how, log.Items, attempted, output.Columns[v1.NetworkEntry]{
			Head: []string{"WHAT", "BY", "NAME", "ADDRESS", "TIMES", "LAST", "REASON"},
			Row: func(e v1.NetworkEntry, now time.Time) []string {
				what := "allowed"
				switch {
				case e.Learned:
					what = "learnt"
				case !e.Allowed:
					what = "refused"
				}
				return []string{what, e.Protocol, e.Name, addressOf(e), strconv.FormatInt(e.Count, 10), output.Ago(now, &e.LastAt), e.Reason}
			},
			Whole: log,
		})
	}
	return c
}

// addressOf is where an entry of the log led to.
func addressOf(e v1.NetworkEntry) string {
	if e.Port == 0 {
		return e.Address
	}
	return net.JoinHostPort(e.Address, strconv.Itoa(e.Port))
}

// attempted is what an entry of the log tried to reach, by name where it had one.
func attempted(e v1.NetworkEntry) string { return cmp.Or(e.Name, addressOf(e)) }

// proposal is the command that sets a policy.
func proposal(sandbox string, p v1.NetworkPolicy) string {
	text := "sandpit network set " + sandbox + " " + p.Mode
	domains := slices.DeleteFunc(slices.Clone(p.AllowDomains), func(d string) bool {
		return slices.ContainsFunc(p.PresetDomains, func(x v1.PresetDomain) bool { return x.Domain == d })
	})
	var headers []string
	for _, host := range slices.Sorted(maps.Keys(p.Headers)) {
		for _, name := range slices.Sorted(maps.Keys(p.Headers[host])) {
			headers = append(headers, host+"="+name+":"+p.Headers[host][name])
		}
	}
	for _, l := range []struct {
		flag  string
		items []string
	}{{"--allow", p.AllowPresets}, {"--allow-domain", domains}, {"--allow-cidr", p.AllowCIDRs}, {"--allow-port", p.AllowPorts}, {"--host-header", headers}} {
		for _, item := range l.items {
			text += " " + l.flag + " '" + strings.ReplaceAll(item, "'", `'\''`) + "'"
		}
	}
	return text
}

func newNetworkPresets(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "presets [flags]",
		Short: "List the names for lists of hosts, and what each stands for",
		Long: `List the names for lists of hosts that --allow takes, and what each stands for in a sandbox of an image. What a
package tool's settings in the image or on the server's host say is read when a policy is set.`,
		Args: app.Takes(0, 0),
	}
	image := c.Flags().String("image", "", "of sandboxes of this image; see sandpit image ls")
	_ = c.RegisterFlagCompletionFunc("image", a.CompleteImages)
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Presets(c.Context(), *image)
		if err != nil {
			return err
		}
		if !all.Built {
			a.Warn("the image is not built yet, so what it says itself is missing")
		}
		return output.List(a.Stdout, how, all.Items, func(p v1.Preset) string { return p.Name }, output.Columns[v1.Preset]{
			Head: []string{"PRESET", "NAME", "FROM", "WHERE THE LIST IS FROM"},
			Rows: func(p v1.Preset, _ time.Time) (rows [][]string) {
				if len(p.Domains) == 0 {
					return [][]string{{p.Name, "none", "", p.About}}
				}
				for _, d := range p.Domains {
					rows = append(rows, []string{p.Name, d.Domain, d.Source, p.About})
				}
				return rows
			},
			Whole: all,
		})
	}
	return c
}

func newNetworkRequests(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "requests [flags] [SANDBOX]",
		Short: "List what agents asked to reach and nobody has answered",
		Long: `List what agents asked that sandboxes may reach and nobody has answered yet, the oldest first. The words in quotes
are an agent's own, and may be anybody's who wrote what it read. A request is kept for a day, and until the server is restarted.`,
		Args:              app.Takes(0, 1),
		ValidArgsFunction: a.CompleteAll,
	}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.NetworkRequests(c.Context(), strings.Join(args, ""))
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, all, func(r v1.NetworkRequest) string { return r.ID }, output.Columns[v1.NetworkRequest]{
			Head: []string{"REQUEST", "SANDBOX", "ASKS FOR", "BY", "ASKED", "SAYS"},
			Row: func(r v1.NetworkRequest, now time.Time) []string {
				why := ""
				if r.Reason != "" {
					why = fmt.Sprintf("%q", r.Reason)
				}
				return []string{r.ID, r.Sandbox, asked(&r), r.Actor, output.Ago(now, r.CreatedAt), why}
			},
			Whole: v1.NetworkRequestList{Items: all},
		})
	}
	return c
}

// asked is what a request names, with what its presets stand for.
func asked(r *v1.NetworkRequest) string {
	var out []string
	for _, p := range r.AllowPresets {
		var names []string
		for _, d := range r.PresetDomains {
			if d.Preset == p {
				names = append(names, d.Domain)
			}
		}
		if len(names) > 0 {
			p += " (" + strings.Join(names, " ") + ")"
		}
		out = append(out, p)
	}
	return strings.Join(append(out, r.AllowDomains...), ", ")
}

func newNetworkAnswer(a *app.App, verb, short, done string, do func(*client.Client, context.Context, string) (*v1.NetworkRequest, error)) *cobra.Command {
	c := &cobra.Command{
		Use: verb + " [flags] REQUEST", Short: short, Args: app.Takes(1, 1), ValidArgsFunction: a.CompleteRequests,
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r, err := do(cl, c.Context(), args[0])
		switch {
		case err != nil:
			return err
		case out.IsData():
			return output.Data(a.Stdout, *out, r)
		}
		_, err = fmt.Fprintln(a.Stdout, output.Printable(fmt.Sprintf(done, r.Sandbox, asked(r))))
		return err
	}
	return c
}
