// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package browser opens web pages in the user's browser.
package browser

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"time"
)

// ErrNone is returned where there is no screen, or no program that opens a page.
var ErrNone = errors.New("there is no browser here")

// startPatience is how long a program may take to say that it cannot open a page. Some are the browser
// themselves, and run on.
const startPatience = 3 * time.Second

// Open has a browser show a page of the web. Where none can be found it is [ErrNone]. goos is the
// system's name, and getenv has the variables of this program.
func Open(goos string, getenv func(string) string, page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not the address of a page", page)
	}
	line := opener(goos, getenv)
	if line == nil {
		return ErrNone
	}
	program, err := exec.LookPath(line[0])
	if err != nil {
		return ErrNone
	}
	cmd := exec.Command(program, append(line[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the program, or with us
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", line[0], err)
		}
	case <-time.After(startPatience):
	}
	return nil
}

// opener returns the program that opens pages, with its arguments; nil: none.
func opener(goos string, getenv func(string) string) []string {
	if own, _, _ := strings.Cut(getenv("BROWSER"), ":"); own != "" && goos != "windows" {
		return strings.Fields(strings.ReplaceAll(own, "%s", ""))
	}
	switch goos {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open"}
}
