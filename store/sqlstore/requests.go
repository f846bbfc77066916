// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// requests is store.Requests within one transaction.
type requests struct{ tx *tx }

const requestColumns = "id, project, hash, created_at, made, status, header, answer"

const (
	hasRequest = "SELECT 1 FROM requests WHERE id = $1"
	getRequest = "SELECT " + requestColumns + " FROM requests WHERE id = $1"
	// The same request again; it keeps its place.
	amendRequest  = "UPDATE requests SET made = made || $3 WHERE id = $1 AND created_at = $2"
	answerRequest = "UPDATE requests SET made = $3, status = $4, header = $5, answer = $6 WHERE id = $1 AND created_at = $2"
	lastRequest   = "SELECT n FROM requests WHERE project = $1 ORDER BY n DESC LIMIT 1"
	insertRequest = "INSERT INTO requests (" + requestColumns + ", n) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
	deleteRequest = "DELETE FROM requests WHERE id = $1 AND created_at < $2"
	pruneRequests = "DELETE FROM requests WHERE project = $1 AND n <= $2"
	countRequests = "SELECT COUNT(*) FROM requests WHERE project = $1"
	// In the order of seq, so that no index on the time has to be written.
	expireRequests = "DELETE FROM requests WHERE seq IN (SELECT seq FROM requests ORDER BY seq LIMIT $2) AND created_at < $1"
)

// pruneEvery is how many inserts share one look for requests that are too many.
const pruneEvery = 64

var _ store.Requests = requests{}

func (q requests) Get(id []byte) (*store.KeyedRequest, error) {
	var one int64
	found, err := q.tx.row(hasRequest, []any{id}, &one) // nearly always there is none, and a row of one column is cheap to ask for
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "there is no such keyed request")
	}
	var r store.KeyedRequest
	var created, status int64
	found, err = q.tx.row(getRequest, []any{id}, &r.ID, &r.Project, &r.Hash, &created, &r.Made, &status, &r.Header, &r.Answer)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "there is no such keyed request")
	}
	r.CreatedAt, r.Status = fromMicros(created), int(status)
	return &r, nil
}

func (q requests) Put(r *store.KeyedRequest) error {
	if len(r.Answer) > store.MaxKeptAnswer {
		return fault.New(fault.TooLarge, "an answer of %d bytes is not kept; there can be %d", len(r.Answer), store.MaxKeptAnswer)
	}
	// What a request makes comes first of all nearly always, and its answer last.
	if r.Status != 0 {
		n, err := q.tx.exec(answerRequest, r.ID, micros(r.CreatedAt), r.Made, int64(r.Status), r.Header, r.Answer)
		if err != nil || n > 0 {
			return err
		}
	}
	n, err := q.insert(r)
	if err != nil || n > 0 {
		return err
	}
	if r.Status == 0 {
		if n, err = q.tx.exec(amendRequest, r.ID, micros(r.CreatedAt), r.Made); err != nil || n > 0 {
			return err
		}
	}
	if n, err = q.tx.exec(deleteRequest, r.ID, micros(r.CreatedAt)); err != nil || n == 0 {
		return err
	}
	_, err = q.insert(r)
	return err
}

// insert adds a request unless there is one with its ID, and returns how many it added.
func (q requests) insert(r *store.KeyedRequest) (int64, error) {
	var last int64
	if _, err := q.tx.row(lastRequest, []any{r.Project}, &last); err != nil {
		return 0, err
	}
	last++
	n, err := q.tx.exec(insertRequest, r.ID, r.Project, r.Hash, micros(r.CreatedAt), r.Made, int64(r.Status), r.Header, r.Answer, last)
	if err == nil && n > 0 && last%pruneEvery == 0 { // room for those up to the next look
		_, err = q.tx.exec(pruneRequests, r.Project, last-store.MaxKeyedRequests+pruneEvery-1)
	}
	return n, err
}

func (q requests) Expire(before time.Time, limit int) (int, error) {
	n, err := q.tx.exec(expireRequests, micros(before), int64(limit))
	return int(n), err
}

func (q requests) Count(project string) (int, error) {
	var n int64
	_, err := q.tx.row(countRequests, []any{project}, &n)
	return int(n), err
}
