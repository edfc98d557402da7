package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

func (t *Txn) UpsertJob(j *cluster.Job) error { return errSkeleton }

func (t *Txn) DeleteJob(k cluster.JobKey, purge bool) error { return errSkeleton }

func (t *Txn) UpsertEvals(evals []*cluster.Evaluation) error { return errSkeleton }
