// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// planOf returns the steps that the data base would take.
func planOf(t *testing.T, s *Store, text string, args []any) string {
	t.Helper()
	c, err := s.reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.idle = append(s.idle, c) }()
	var steps []string
	err = c.each(t.Context(), "EXPLAIN QUERY PLAN "+text, args, func(scan func(...any) error) error {
		var id, parent, unused int64
		var step string
		err := scan(&id, &parent, &unused, &step)
		steps = append(steps, step)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Join(steps, "; ")
}

// A page must cost what a page costs, whatever the table's size: no step may
// sort, and a filter on project or sandbox must be a search in its index.
func TestPlans(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	t.Run("Events", func(t *testing.T) {
		for bits := range 1 << 7 {
			has := func(bit int) bool { return bits&(1<<bit) != 0 }
			var q store.EventQuery
			index := "SCAN events" // in the order of Seq, up to a page
			q.Oldest = has(0)
			if has(1) {
				q.Project, index = "p", "SEARCH events USING INDEX events_project (project=?"
			}
			if has(2) {
				q.Sandbox, index = "s", "SEARCH events USING INDEX events_sandbox (sandbox=?"
			}
			if has(3) {
				q.ProcessID = "x"
			}
			if has(4) {
				q.Types = []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}
			}
			if has(5) {
				q.Cursor = cursor{kind: cursorEvents, project: q.Project, oldest: q.Oldest, number: 500}.String()
				if !has(1) && !has(2) {
					index = "SEARCH events USING INTEGER PRIMARY KEY"
				}
			}
			if has(6) {
				q.Since, q.Until = time.Unix(1, 0), time.Unix(2, 0)
			}
			text, args, err := eventListing(&q, 50)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, s, text, args)
			if !strings.HasPrefix(plan, index) || strings.Contains(plan, ";") {
				t.Errorf("%+v\ngot plan %q, want %q and nothing else", q, plan, index)
			}
			if has(5) && index[:6] == "SEARCH" && !strings.Contains(plan, "seq<") && !strings.Contains(plan, "seq>") && !strings.Contains(plan, "rowid") {
				t.Errorf("%+v\nthe plan %q does not begin at the cursor", q, plan)
			}
		}
	})
	t.Run("Sandboxes", func(t *testing.T) {
		for bits := range 1 << 7 {
			has := func(bit int) bool { return bits&(1<<bit) != 0 }
			q := store.SandboxQuery{Oldest: has(0)}
			index := "sandboxes USING INDEX sandboxes_created"
			if has(1) {
				q.Project, index = "p", "SEARCH sandboxes USING INDEX sandboxes_project (project=?"
			}
			if has(2) {
				q.Cursor = cursor{kind: cursorSandboxes, project: q.Project, oldest: q.Oldest, number: 500, name: "x"}.String()
			}
			if has(3) {
				q.States, q.Image = []sandbox.State{sandbox.Running, sandbox.Stopped}, "python"
			}
			if has(6) {
				q.States, index = []sandbox.State{sandbox.Running, sandbox.Failed}, "sandboxes USING INDEX sandboxes_awake"
			}
			if has(4) {
				q.Search = "x"
			}
			if has(5) {
				q.Metadata = map[string]string{"a": "b"}
			}
			tx := &tx{ctx: t.Context(), dialect: &s.dialect}
			text, args, err := sandboxes{tx}.listing(&q, 50)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, s, text, args)
			if !strings.Contains(plan, index) || strings.Contains(plan, ";") {
				t.Errorf("%+v\ngot plan %q, want %q and nothing else", q, plan, index)
			}
			if has(2) && !strings.Contains(plan, "(created_at,id)") {
				t.Errorf("%+v\nthe plan %q does not begin at the cursor", q, plan)
			}
		}
	})
	t.Run("Sorts", func(t *testing.T) {
		// The stopped ones are read in the order of the sort's index, up to a page; the others, which are few, by their own.
		indexes := map[store.SandboxSort][2]string{
			store.SortActivity: {"sandboxes_by_activity", "(last_activity,id)"}, store.SortExpiry: {"sandboxes_by_expiry", "(expires_order,id)"},
			store.SortCPU: {"sandboxes_by_cpu", "(cpu,id)"}, store.SortMemory: {"sandboxes_by_memory", "(memory_mb,id)"}, store.SortDisk: {"sandboxes_by_disk", "(disk_mb,id)"},
		}
		for _, by := range store.SandboxSorts() {
			if by == store.SortCreated {
				continue
			}
			for bits := range 1 << 6 {
				has := func(bit int) bool { return bits&(1<<bit) != 0 }
				q := store.SandboxQuery{Sort: by, Oldest: has(0)}
				if has(1) {
					q.Project = "p"
				}
				if has(2) {
					q.Cursor = cursor{kind: sortingBy(by).kind, project: q.Project, oldest: q.Oldest, number: 500, name: "x"}.String()
				}
				if has(3) {
					q.States = []sandbox.State{sandbox.Running, sandbox.Stopped}
				}
				if has(4) {
					q.Search, q.Metadata = "x", map[string]string{"a": "b"}
				}
				if has(5) {
					q.Offset = 100
				}
				if has(2) && has(5) {
					continue
				}
				text, args, err := sandboxes{&tx{ctx: t.Context(), dialect: &s.dialect}}.listing(&q, 50)
				if err != nil {
					t.Fatal(err)
				}
				plan := planOf(t, s, text, args)
				stopped, others, both := strings.Cut(plan, "UNION ALL")
				if !both || !strings.Contains(stopped, "INDEX "+indexes[by][0]) || strings.Contains(stopped, "TEMP B-TREE") || !strings.Contains(others, "INDEX sandboxes_awake") ||
					!strings.HasPrefix(plan, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)") {
					t.Errorf("%+v\ngot plan %q, want %s in its order, and sandboxes_awake", q, plan, indexes[by][0])
				}
				if has(2) && !strings.Contains(stopped, indexes[by][0]+" ("+indexes[by][1]) {
					t.Errorf("%+v\nthe plan %q does not begin at the cursor", q, plan)
				}
			}
			for _, states := range [][]sandbox.State{{sandbox.Stopped}, {sandbox.Running, sandbox.Failed}} {
				q := store.SandboxQuery{Sort: by, Project: "p", States: states}
				text, args, err := sandboxes{&tx{ctx: t.Context(), dialect: &s.dialect}}.listing(&q, 50)
				if err != nil {
					t.Fatal(err)
				}
				plan, index := planOf(t, s, text, args), indexes[by][0]
				if states[0] != sandbox.Stopped {
					index = "sandboxes_awake"
				}
				if !strings.Contains(plan, "INDEX "+index) || strings.Contains(plan, "UNION ALL") {
					t.Errorf("%v by %s\ngot plan %q, want %s alone", states, by, plan, index)
				}
			}
		}
	})
	t.Run("Snapshots", func(t *testing.T) {
		for bits := range 1 << 6 {
			has := func(bit int) bool { return bits&(1<<bit) != 0 }
			q := store.SnapshotQuery{Oldest: has(0)}
			index := "snapshots USING INDEX snapshots_created"
			if has(2) {
				yes := true
				q.Auto, q.Named = &yes, &yes
			}
			if has(3) {
				q.States, index = []sandbox.SnapshotState{sandbox.SnapshotCreating, sandbox.SnapshotDeleting}, "snapshots USING INDEX snapshots_intent"
			}
			if has(4) {
				q.Project, index = "p", "SEARCH snapshots USING INDEX snapshots_project (project=?"
			}
			if has(1) {
				q.Cursor = cursor{kind: cursorSnapshots, project: q.Project, oldest: q.Oldest, number: 500, name: "x"}.String()
			}
			if has(5) {
				q.Sandbox, index = "s", "SEARCH snapshots USING INDEX snapshots_sandbox (sandbox=?"
			}
			text, args, err := snapshotListing(&q, 50)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, s, text, args)
			if !strings.Contains(plan, index) || strings.Contains(plan, ";") {
				t.Errorf("%+v\ngot plan %q, want %q and nothing else", q, plan, index)
			}
			if has(1) && !strings.Contains(plan, "(created_at,id)") {
				t.Errorf("%+v\nthe plan %q does not begin at the cursor", q, plan)
			}
		}
	})
	t.Run("Counts", func(t *testing.T) {
		for bits := range 1 << 2 {
			var q store.SandboxQuery
			if bits&1 != 0 {
				q.Project = "p"
			}
			if bits&2 != 0 {
				q.States = []sandbox.State{sandbox.Running, sandbox.Stopped}
			}
			text, args, stopped := sandboxes{&tx{dialect: &s.dialect}}.counting(&q)
			plan := planOf(t, s, text, args)
			if !stopped || !strings.HasPrefix(plan, "SCAN sandboxes USING COVERING INDEX sandboxes_awake") {
				t.Errorf("%+v\ngot plan %q, want a look at that index alone, and that the stopped ones belong to it (%v)", q, plan, stopped)
			}
		}
	})
	t.Run("Prune", func(t *testing.T) {
		for name, c := range map[string]struct {
			q    store.EventPrune
			want string
		}{
			"Age":     {store.EventPrune{Before: time.Now()}, "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
			"Project": {store.EventPrune{Project: "p", Upto: 9}, "SEARCH events USING INDEX events_project (project=? AND seq>? AND seq<?)"},
		} {
			text, args := pruning(&c.q, 5, []int64{3})
			if plan := planOf(t, s, text, args); !strings.HasPrefix(plan, c.want) || !strings.Contains(plan, "r USING INDEX runs_live") {
				t.Errorf("%s: got plan %q, want %q", name, plan, c.want)
			}
		}
	})
	t.Run("Others", func(t *testing.T) {
		for name, c := range map[string]struct{ text, want string }{
			"Get":            {getSandbox, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"ByKey":          {sandboxByKey, "SEARCH sandboxes USING INDEX sandboxes_key (project=? AND key=?)"},
			"Update":         {updateSandbox, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"Tally":          {tallySandbox, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"Finish":         {finishEvent, "SEARCH events USING INTEGER PRIMARY KEY (rowid=?)"},
			"FindUnfinished": {findUnfinished, "SEARCH events USING INDEX events_unfinished (sandbox=?)"},
			"Finished":       {findFinished, "SEARCH events USING COVERING INDEX events_sandbox (sandbox=?)"},
			"Unfinished":     {oneUnfinished, "SEARCH events USING INDEX events_unfinished (sandbox=?)"},
			"AllUnfinished":  {allUnfinished, "SCAN events USING INDEX events_unfinished; USE TEMP B-TREE FOR ORDER BY"},
			"Move":           {moveSandbox, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"Replace":        {replaceSandbox, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"DeleteMounts":   {deleteMounts, "SEARCH sandbox_mounts USING INDEX sqlite_autoindex_sandbox_mounts_1 (sandbox=?)"},
			"Users":          {volumeUsers, "SEARCH sandbox_mounts USING COVERING INDEX sandbox_mounts_volume (volume=?)"},
			"Volume":         {volumeByName, "SEARCH volumes USING INDEX volumes_name (project=? AND name=?)"},
			"Volumes":        {projectVolumes, "SEARCH volumes USING INDEX volumes_name (project=?)"},
			"Snapshot":       {getSnapshot, "SEARCH snapshots USING INDEX sqlite_autoindex_snapshots_1 (id=?)"},
			"SnapshotName":   {snapshotByName, "SEARCH snapshots USING INDEX snapshots_name (sandbox=? AND name=?)"},
			"SetSnapshot":    {updateSnapshot, "SEARCH snapshots USING INDEX sqlite_autoindex_snapshots_1 (id=?)"},
			"Secret":         {getSecret, "SEARCH secrets USING INDEX sqlite_autoindex_secrets_1 (sandbox=? AND project=? AND name=?)"},
			"Secrets":        {listSecrets, "SEARCH secrets USING INDEX sqlite_autoindex_secrets_1 (sandbox=? AND project=?)"},
			"AllSecrets":     {allSecrets, "SCAN secrets USING INDEX sqlite_autoindex_secrets_1"},
			"DropSecrets":    {deleteSecrets, "SEARCH secrets USING INDEX sqlite_autoindex_secrets_1 (sandbox=?)"},
			"DropRequests":   {dropNetworkRequests, "SEARCH network_requests USING INDEX network_requests_sandbox (sandbox=?)"},
			"LookByAge":      {lookByAge, "CO-ROUTINE look; SEARCH events USING INTEGER PRIMARY KEY (rowid>?); SCAN look"},
			"LookByProject":  {lookByProject, "CO-ROUTINE look; SEARCH events USING COVERING INDEX events_project (project=? AND seq>? AND seq<?); SEARCH look"},
			"FirstProject":   {firstProject, "SCAN events USING COVERING INDEX events_project"},
			"NextProject":    {nextProject, "SEARCH events USING COVERING INDEX events_project (project>?)"},
			"Surplus":        {surplusUpto, "SEARCH events USING COVERING INDEX events_project (project=?)"},
			"Prepared":       {preparedEvents, "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
			"ByHash":         {tokenByHash, "SEARCH tokens USING INDEX tokens_hash (hash=?); CORRELATED SCALAR SUBQUERY 1; SEARCH token_old_secrets USING COVERING INDEX token_old_secrets_token (token=?)"},
			"OldSecret":      {oldSecret, "SEARCH token_old_secrets USING INDEX sqlite_autoindex_token_old_secrets_1 (hash=?)"},
			"Request":        {getRequest, "SEARCH requests USING INDEX requests_id (id=?)"},
			"AnswerRequest":  {answerRequest, "SEARCH requests USING INDEX requests_id (id=?)"},
			"LastRequest":    {lastRequest, "SEARCH requests USING COVERING INDEX requests_project (project=?)"},
			"PruneUsage":     {pruneUsage, "SEARCH usage USING COVERING INDEX sqlite_autoindex_usage_1 (project=? AND hour<?); SCALAR SUBQUERY 2; CO-ROUTINE oldest; SEARCH usage USING COVERING INDEX sqlite_autoindex_usage_1 (project=? AND hour<?); SEARCH oldest"},
			"AllMeters":      {allMeters, "SEARCH usage_meters USING INDEX sqlite_autoindex_usage_meters_1 (sandbox>?)"},
			"MetersOf":       {metersOf, "SEARCH usage_meters USING INDEX sqlite_autoindex_usage_meters_1 (sandbox=?); LIST SUBQUERY 1; SEARCH sandboxes USING COVERING INDEX sandboxes_project (project=?)"},
			"UsageFrom":      {usageFrom, "SEARCH usage USING COVERING INDEX sqlite_autoindex_usage_1 (project>?)"},
			"Taken":          {takenOf, "SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (id=?)"},
			"ListChanges":    {listChanges, "SEARCH changes USING INTEGER PRIMARY KEY (rowid>?)"},
			"ListWebhooks":   {listWebhooks, "SEARCH webhooks USING INDEX webhooks_project (project=?)"},
			"Deliveries":     {listDeliveries, "SEARCH webhook_deliveries USING INDEX webhook_deliveries_webhook (webhook=? AND number<?)"},
			"DueDelivery":    {dueDelivery, "SEARCH webhook_deliveries USING INDEX webhook_deliveries_due (webhook=?)"},
			"CountPending":   {countPending, "SEARCH webhook_deliveries USING COVERING INDEX webhook_deliveries_due (webhook=?)"},
			"PruneRequests":  {pruneRequests, "SEARCH requests USING INDEX requests_project (project=? AND n<?)"},
		} {
			args := make([]any, 60) // more than the longest has
			if got := planOf(t, s, c.text, args); got != c.want {
				t.Errorf("%s: got plan %q, want %q", name, got, c.want)
			}
		}
	})
}
