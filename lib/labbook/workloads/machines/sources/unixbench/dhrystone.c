/* A loop by Weicker's definition of Dhrystone 2.1 (SIGPLAN Notices 23 (8), 1988), in statements of our own.

   He defines it by what system programs were seen to do: of 102 statements 52 assign, 33 control the flow
   and 17 call, on integers, characters, enumerations, pointers, records, arrays and strings of 30
   characters, of which one is copied and two are compared; no floating point. Compiled alone, with -DALONE, it is a
   program in which each statement of a loop counts itself, and which prints how many there were. */
#include "bench.h"

#include <string.h>

#ifdef ALONE
#include <stdio.h>
#include <stdlib.h>
static long assigned, controlled, calls;
#define SET(what) (assigned++, what)
#define FLOW(what) (controlled++, what)
#define BREAK {controlled++; break;}
#define CALL(what) (calls++, what)
#else
#define SET(what) what
#define FLOW(what) what
#define BREAK break;
#define CALL(what) what
#endif

typedef enum {RED, GREEN, BLUE, WHITE, BLACK} Colour;
typedef char Text[31];
typedef struct Item {struct Item *next; Colour colour; int amount, place; Text name;} Item;

static Item items[2];
static Item *first, *second;
static int total, line[50], square[50][50];
static char letter, other_letter;
static int flag;

static CALLED int same_letter(char a, char b)
{
    char mine = a;
    if (FLOW(mine != b))
        return FLOW(0);
    SET(letter = mine);
    return FLOW(1);
}

/* Whether the first text comes after the second, which agree but for a few letters. */
static CALLED int comes_after(const char *a, const char *b)
{
    int at = 2;
    char found = 'A';
    while (FLOW(at <= 2))
        if (FLOW(CALL(same_letter(a[at], b[at + 1])) == 0)) {
            SET(found = 'W');
            SET(at = at + 1);
        }
    if (FLOW(found >= 'W') && FLOW(found < 'Z'))
        SET(at = 7);
    if (FLOW(CALL(strcmp(a, b)) > 0)) {
        SET(total = at + 7);
        return FLOW(1);
    }
    return FLOW(found == 'R');
}

static CALLED int is_blue(Colour colour)
{
    Colour mine = colour;
    return FLOW(mine == BLUE);
}

static CALLED void next_colour(Colour colour, Colour *next)
{
    SET(*next = colour);
    if (FLOW(!CALL(is_blue(colour))))
        SET(*next = WHITE);
    switch (FLOW(colour)) {
    case RED:
        SET(*next = RED);
        BREAK
    case GREEN:
        SET(*next = total > 100 ? RED : WHITE);
        BREAK
    case BLUE:
        SET(*next = GREEN);
        BREAK
    case WHITE:
        BREAK
    case BLACK:
        SET(*next = BLUE);
    }
}

static CALLED void sum_up(int a, int b, int *sum)
{
    int partly;
    SET(partly = a + 2);
    SET(*sum = b + partly);
}

static CALLED void fill(int *row, int (*rows)[50], int at, int value)
{
    int place, i;
    SET(place = at + 5);
    if (FLOW(value > 0))
        SET(row[place] = value);
    SET(row[place + 1] = row[place]);
    SET(row[place + 30] = place);
    for (SET(i = place); FLOW(i <= place + 1); SET(i++))
        SET(rows[place][i] = place);
    SET(rows[place][place - 1] = rows[place][place - 1] + 1);
    SET(rows[place + 20][place] = row[place]);
    SET(total = 5);
}

static CALLED void count_down(int *number)
{
    int left;
    int found = 0;
    SET(left = *number + 10);
    do
        if (FLOW(letter == 'A')) {
            SET(left = left - 1);
            SET(*number = left - total);
            SET(found = 1);
        }
    while (FLOW(!found));
}

static CALLED void take_next(Item **found)
{
    if (FLOW(first != 0))
        SET(*found = first->next);
    CALL(sum_up(10, total, &first->amount));
}

static CALLED void follow(Item *item)
{
    Item *next;
    SET(next = item->next);
    SET(*next = *first);
    SET(item->amount = 5);
    SET(next->amount = item->amount);
    SET(next->next = item->next);
    CALL(take_next(&next->next));
    if (FLOW(next->colour == BLACK))
        SET(next->amount = 0);
    if (FLOW(next->place == 0)) {
        SET(next->amount = 6);
        CALL(next_colour(item->colour, &next->colour));
        SET(next->next = first->next);
        CALL(sum_up(next->amount, 10, &next->amount));
    } else {
        SET(*item = *next);
    }
}

static CALLED void set_letters(void)
{
    int is_a;
    SET(is_a = letter == 'A');
    SET(flag = is_a | flag);
    SET(other_letter = 'B');
}

static CALLED void reset(void)
{
    SET(letter = 'A');
    SET(flag = 0);
}

static CALLED void loop(int number, Text one, Text two)
{
    int a, b, c = 0, i;
    Colour colour;
    CALL(reset());
    CALL(set_letters());
    SET(a = 2);
    SET(b = 3);
    CALL(strcpy(two, "A TEXT OF THIRTY LETTERS, TWO."));
    SET(colour = GREEN);
    SET(flag = !CALL(comes_after(one, two)));
    while (FLOW(a < b)) {
        SET(c = 5 * a - b);
        CALL(sum_up(a, b, &c));
        SET(a++);
    }
    CALL(fill(line, square, a, c));
    CALL(follow(first));
    for (SET(i = 'A'); FLOW(i <= other_letter); SET(i++))
        if (FLOW(CALL(same_letter((char) i, 'C')))) {
            CALL(next_colour(RED, &colour));
            SET(b = number);
        }
    SET(b = b * a);
    SET(a = b / c);
    SET(b = 7 * (b - c) - a);
    CALL(count_down(&a));
}

/* What every loop must come to; ends the program when it has not. */
static void check(int number)
{
    if (total != 5 || flag != 1 || letter != 'A' || other_letter != 'B' || line[8] != 7 || line[9] != 7
        || line[38] != 8 || square[8][8] != 8 || square[28][8] != 7 || square[8][7] != number
        || first->amount != 17 || second->amount != 18 || second->colour != GREEN
        || strcmp(second->name, "A RECORD'S TEXT"))
        fail("dhrystone: not the values that it must come to");
}

static void prepare(Text one)
{
    first = &items[0];
    second = &items[1];
    first->next = second;
    first->colour = BLUE;
    strcpy(first->name, "A RECORD'S TEXT");
    strcpy(one, "A TEXT OF THIRTY LETTERS, ONE.");
}

double dhrystone(void)
{
    Text one, two;
    double count = 0;
    int number = 0;
    for (prepare(one); !over; count++) {
        loop(number, one, two);
        number = square[8][7];
    }
    check(number);
    return count;
}

#ifdef ALONE
volatile sig_atomic_t over;

void fail(const char *what)
{
    puts(what);
    exit(2);
}

int main(void)
{
    Text one, two;
    prepare(one);
    loop(1, one, two);
    check(1);
    printf("%ld %ld %ld\n", assigned, controlled, calls);
    return 0;
}
#endif
