// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// options of a run.
type options struct {
	cache   string
	images  string
	kernels []string      // parts of releases; none: all
	checks  []string      // none: all
	limit   time.Duration // for one machine
}

func parse(args []string) (o options, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "/var/cache"
	}
	images := os.Getenv("SANDPIT_TEST_IMAGES")
	if images == "" {
		images = "/var/tmp/sandpit-images"
	}
	flags := flag.NewFlagSet("kernels", flag.ContinueOnError)
	flags.StringVar(&o.cache, "cache", filepath.Join(cache, "sandpit-kernels"), "where all that is made is kept")
	flags.StringVar(&o.images, "images", images, "a directory of built images, as the tests use it")
	flags.DurationVar(&o.limit, "limit", 3*time.Hour, "how long one machine may take")
	kernels := flags.String("kernels", "", "only kernels whose releases begin so, as in 6.1.,6.12.")
	checks := flags.String("checks", "", "only these checks, as in doctor,cli")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("there are no arguments beside flags, and %q is one", flags.Arg(0))
	}
	o.kernels, o.checks = list(*kernels), list(*checks)
	return o, nil
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// run reports whether all checks passed on all kernels.
func run(ctx context.Context, args []string) (bool, error) {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if os.Geteuid() != 0 {
		return false, errors.New("a root file system is made, which needs root")
	}
	plan, err := planOf(o.checks)
	if err != nil {
		return false, err
	}
	c, err := openCache(ctx, o.cache)
	if err != nil {
		return false, err
	}
	kernels, err := c.fetchKernels(o.kernels)
	if err != nil {
		return false, err
	}
	if err := c.makeRoot(kernels); err != nil {
		return false, err
	}
	if err := c.makePayload(plan, o.images); err != nil {
		return false, err
	}
	m := machines{cache: c, limit: o.limit, accel: c.accelerator(kernels[len(kernels)-1])}
	c.say("machines run with %s", m.accel)
	var t table
	for _, k := range kernels {
		results, err := m.check(k, plan)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		t.add(k, plan, results, err)
	}
	t.write(os.Stdout)
	return t.passed(), nil
}
