// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

// bound is how long a step may take: far more than it does.
const bound = 2 * time.Minute

//go:embed costs.js
var costs string

// Watch has the pages that a tab opens from now on note what they cost, which the other functions read.
func Watch(tab context.Context) error {
	_, err := chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: costs})
	return err
}

// SignIn signs a tab's browser in at a server's address with a token, and leaves the tab at the page for that.
func SignIn(tab context.Context, server, token string) error {
	if err := browser.Visit(tab, server+"/console/"); err != nil {
		return err
	}
	status, err := browser.Await[int](tab, fmt.Sprintf("fetch('/v1/session', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({token: %q})}).then(r => r.status)", token))
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("signing in is answered with status %d", status)
	}
	return err
}

// Hide has a tab's page believe that nobody sees it, as a tab behind another one has, or that somebody does again.
func Hide(tab context.Context, yes bool) error {
	_, err := browser.Await[bool](tab, fmt.Sprintf("(Object.defineProperty(document, 'hidden', {configurable: true, get: () => %t}), document.dispatchEvent(new Event('visibilitychange')))", yes))
	return err
}

// Until waits for an expression to be true in the page of a tab that is watched.
func Until(tab context.Context, expression string) error {
	limit, cancel := context.WithTimeout(tab, bound)
	defer cancel()
	if _, err := browser.Await[bool](limit, "sandpitCosts.until(() => !!("+expression+"))"); err != nil {
		says, _ := browser.Await[string](tab, "location.href + ' says ' + document.body.innerText.slice(0, 500)")
		return fmt.Errorf("the page is not so: %s: %w; %s", expression, err, says)
	}
	return nil
}
