// One call of SAP's own client. On standard input: {"options", "method", "argument"}, the client's package as the first
// argument. On standard output: {"error": {"message", "statusCode", "code"}} or {"result"}.
'use strict';

const { Scheduler } = require(process.argv[2]);

let text = '';
process.stdin.on('data', (part) => { text += part; });
process.stdin.on('end', () => {
  const { options, method, argument } = JSON.parse(text);
  const done = (error, result) => {
    const told = error
      ? { error: { message: error.message, statusCode: error.statusCode, code: error.code } }
      : { result };
    process.stdout.write(JSON.stringify(told));
  };
  try {
    new Scheduler(options)[method](argument, done);
  } catch (thrown) {
    done(thrown);
  }
});
