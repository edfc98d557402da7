// Package base is what each plugin answers: identity, schema, config. Its code is generated from base.proto.
package base
