import { greet } from '@shop/greeting';

console.log(greet('a report'));
